static_assert(sizeof(char) == 2, "bytes");
