#include <io/stored_values.hpp>

#include <tapegraph/compile/instance.hpp>
#include <tapegraph/io/keras.hpp>
#include <tapegraph/nn/layers/depthwise_convolution.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>
#include <tapegraph/tapegraph.hpp>

#include <support/base64.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace keras_test {

namespace tg = tapegraph;
using io_test::close;
using io_test::spread;
using support::contains;
using support::message_of;

namespace {

/// Files of Keras 3.15, deflated here, for HDF5 leaves much empty.
std::string stored(const char* text) {
    const std::string packed = support::from_base64(text);
    const auto bytes =
        tg::io::inflate_bytes(std::as_bytes(std::span(packed)), tg::io::deflate_frame::zlib, 1 << 20, "stored file");
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// model.save("x.keras"), Conv2D(4, 3, name="c1"), BatchNormalization(), ReLU(), SeparableConv2D(3, 2), Conv2D(2, 2, use_bias=False), Flatten(),
/// Dense(2, name="score"): compiled, so that an optimizer's state is in it.
std::string cnn_file() {
    return stored(
        "eNrtHW1sHMV1zx+JgYBMMSVBob2coITKOd1XnNg4iUkcYpoQDjDFbQjr9d3at8l+XHb3HJs0qkUr1VT88A8EUX+gSK0QqiiyqqgKUh"
        "JHVVVFKj+iKqqiih+mqlDUX1GVH/xAom92Zu5253bvzufzx9Uz8mhu3rz5evPmvTdv5s7po61tXQIOO4QzHzw6PgCfUHwQoibbUlay"
        "pegpy9DPRU7LpmSJk7JpKYYe6QtHktH47mg80h2OAJYsWtKknEXwRCzRsyse35VIDCSSffFUXyIZOZ/2dPXZbP+Xw2FBQPEBgGQMfV"
        "yZIB1pRragyqglp8uoZWaiAJNVKzpe0DM2dC+pqNuMKlmWqEuag/y8t8xpEeDnIhTBW9k2JUWXxpyObLMgA0iVpmF2kD9RPghSVtbr"
        "C3q+YB9DhUyvY5KdyYlWTsojvBN6QVW7wz3d4d3d4cRJRDN7Oo+HpRqSnUyg6lZeMi0EHJdUC43IlCYmHKJSAO1WQd2KKu3XyJOJEc"
        "zzqK48oVi2bMpZOlg8hqA2FH3MKOiADKR2iHASWqmdEIcMfTIxGED6TDyA5JQKZf2UdzA4DKhpQ1Uy00ELTCgZPHtUMq6oNl7mVLfT"
        "mS6roqW85SxTsjucRKtj2aZCyBDvDscRKC9ls4qOeoxMSqqSJYwvieOGqUm2M82cpENrFhDVsp1yRZXQyogm7BB3YxOmUcij5gEQkY"
        "AtJx081Iiq6LLkrEjBksUxRbJK5CKjVXTFVmAMb8HK+dAu6ir3IeQR1TAN+zVdQQNnSGnJDrsRTsEcIk05hCAwo2AzwMrkRhNY5oB/"
        "KpuG5R1o5T4JmQChoEom6ZWM3xmPb4mzDIo97V9K2oQhWA4f20yTZQUV9+BYQVGzoovwmNQB4uK8a9firVS2Wc9FJHOCfPJSTxSx5L"
        "Zl3TJMUWRXfEkSCjeVg0kZ5jSqxUiRGPydPH8eVT99lozoHOSXJEoOItF5HO0q4Ai8L/w3PJaxOou59nIGSZCchIDG2Ck5Y4sK2lXx"
        "ZG9PTzK5J5VKJXt6Uqi6NKUgEu1CYkAzNFm3CxrkY9HeXoDIeUtRHakQi8ZiCCcDGA5XknlZGck9zTFQ2au92SYkTVtupy/p8pL61I"
        "xJEMWiJkv6ak+XdD0J8kHSM/IqT9xZYF/5hJfBX+ShSn6CC9fxK7Gm9UzONHRoyG1+mDLabGUAMaMq+TxWjqQBUsDwdANkIihtUNIp"
        "j0wMkAMrJiTpGGoWko7Q9pWNEU2yTtMFXqKcfEU+9lqAiDJlUS00mSzUpCnYVmrBbarKE7Cak3C4UA1nzCAH0aRypmzlDDWLITVZu0"
        "WKrB+u8GfbhqjQV2U4SqBlr2iWWxQL7brJRLbJGCYr5+2cqBVUW8mriiPx4h4DP1lu4CeIcbPSBn7tNr0zi7OKJTeVWZ83QF803ajX"
        "4jBSWl9f5VwiZEOPK6Ve/dR7qdNVPc/46W4/GbR+RDTVGg0RypVdJM0ogUuiNrF2onapvhRqu3JnyoZypsDGTyDvnseZsvIih3Zbs8"
        "jxEYgNkT7Pw/aBIQcKhWJpM1mAlWRGA3gGVi7OOuBclFoxpqH91n7AbCirDMIg5aAzQ8Yw5SZjkwJIRKqkuLN9XeiHJWsAKDhTkHSb"
        "HJRLW7dRtqnXKqVcvnKmaO2buyRxAnf3yW7PfZ4V5Jov8ZQLj04Wt+5LSuZ2tQpJ6ZJkDC2vYEVGEdFNpRbImuiqd0zKnJb1bBSmn8"
        "lFi/gWBohSVtLKufY5Ci2XI7SCChtdR65bYj86LvUYDqk9qd49qd1x5DA4KysTOVvMyhlpusREyMNJfJ/UeaoaY5IqlhcgCOPHQsJF"
        "1iSX8Qk50cfhD1BjUjbPmooti+OmfKYg6xnXMFQDJu04/cVxkGSG2wFsSlkF2hOlTKagFYixDMuYtxhXcBx3SLMJ0r/3xiEu74rtQf"
        "JSs1DLlW+WMf3PkwEigIYViDNeTFHXKDQZjgQZFwBjQHtlJWZBF2VpQjbVaRf1nFmJedkU5Sk5UyDSHNn/pxRbJGxXHLLr8cHfPps8"
        "uf3Q3VC2IAgodqJ3DuhtQZQMMprb/c7Q4PMP3v/4/U6Fjg6hzcEqhW9JQPXdeVo+StIQSWdJ+nELhYecsq0E/jBpn8UbfuXwYYT9LR"
        "NoP4vtOO0QeNiIYejwc2mUjpD8TpLeaPHiTUqmhVIs8QWhKFIZPo3V2G9IaPXwbyfh352bvfyP+VcI5F8eOP+6+ZfKsdl2lt9wSDeo"
        "31ePvzSIeJhK9dnHvP3Mk/zNbTilfP75KS/ePZLv0rzjD7d68YZIPtf+/7V+VG+x89vivCBE828XuoAqyEZA+W2hkFOjs0ibDg+dkM"
        "Kd3Vyi3ZFDLx0LCaQCg4dC6T0fzlOx9wBJXeavkyfDLOJl4jhtI/lHSOpzLefA6fLR1PENQ7qpKAdxYB04ZEpFPAwt8QstJ2a+cB/T"
        "j2Oeu+ZNx4sMW/d63H6IyxQeeOCBBx544IEHHnjggQcemi8E+clZ/0w1P3nHEzgd4CTdkIH6GedJfoqk6suUz/z92d+8hvOjVfix6y"
        "c4nzpRG//mH8f5ue218W/nDsLHfCk3NP+OFPkTh/ntXjx6z1P0Oy+zX+wn7xDCdN9EKV/jcJHkr5OLI8rnlyNevEWSF57CCZ3HJ8e9"
        "eLdI/h5x9OcJvGvUi9dP8m+M4TRH4Fsf9+Kx+5LunyEGj92Pewk896wXb47k5/d59cncQS/eZZK/PVhZvoxEvPKF35fxsBQ5QPn5cp"
        "jVOzg09r4sVOwv/T1vP1MkfyHM16hSoPqfpVe992Xonovel7VUsDdY+VvN3ti7k9sbXM6U2xvhp1bW3gjSkzPP+OnJCvZyt3fcPGxs"
        "/qX8tPi0F4++d4ozerNePwGrJ6eeYuxlkr/+NF+jWvQkS6969WSLS0+2kvohF0KISK5QW6iI407pe5E2Bh5cvtVp+uHw9wksLDzWIT"
        "z2c1LeDuND5S0tLSE8WsyhraG7PySSNuSlyMgKUzy2XxD+DnEnxKcXBOEOpFmIv74mCO9B2g9xK8SZfkF4F9IrAP/4KnA4pL+B/EWA"
        "d8HnGxDbIM7ASWkLpD84AFQ9IMz8Ado0Ic5DnRGA34YT1OI+YeZXUP4QwAeuCTNvw+ePoK3fQ/wl4LwK8I8BbxTiE/D5U4B1Qv3/Qp"
        "qGdGAf7vdtyF+AOv+G+CSaB+SvoLFC+i9I74O6/4F04ArQFT6HAb4I9bYA7JtruP+b0FYePt+F9M/7cd9tkD4BY9p6De/rluK+Xnym"
        "MjWp3hnZxfeyV7+z+w7zfSgU8uyf5e+jXNTfAphdZxS5CTx3HfhMgPjV/iD7nfWzVLN/vk5y+53bP+X2+2Jsbez3gd1Ls9+v9xAtyJ"
        "eS869Q+l7DxWRl+z1B0iRjz9f6vQbWft8b97YzSvIzSb5GtdjvLL3qtd8fcdnvbatqR8z3NIcdEQM7Yj/YrKNgF2eJvdpW5OOLu2uz"
        "Vzv2Vsajcn1nb2U8KreH+ri9Whufbe1tDj77K9ipN+CM9DLw2raF1aPP3r7moA86b34K8XfXkNhbPfqMPNsc9OmF83Q/xDzEHQeCzj"
        "vsPWs1e/HOAD/vcHux/Lxzc9/anHdiB/3OO/xen4fa+JfKsbkBlt9wWKl7feT99fRD8vkBvka1nHdYetV73ml3nXfaheB7ffadUdV7"
        "0SGuJ7mcKdeTXw+ujZ4cecFPT1Z4x33Uew7lYWPzL/UzXD7CeENIyvoFKT/vXaaeTB/2tjdF8heO8DWqRU+y9KpXT3a69OQmofq9Pr"
        "2nZ+/rQww8qLz+8/mNH2EM1pBa6Xv9gav4Pn4znLfnFiBexXf4PfC5G6yVj6DsC3RXDvBPIN0OeIOQLgL84AL9nZTiO9MXKvdG9Un6"
        "WGU8Kr/nXtwYfF+NL0MMn7HvTKqV18+Xoy96JeZq8eXoAeyrngc+m4NT+g34/E/yvkSA+CeA5yHftoDeg1Tzo7U2jB4Xj1OJtL79aI"
        "eAfoeANh8uBJ0N2O9SVLOtLg3zswG3rcrPBl0vr+zZgAb2t5robyQF/RYT/e0l9reWaHs4J1ITsPjbSln0y8bLsAWr7aPPX+f7iO+j"
        "8n30xrD/GaWx39UrnVHubvO2v/0VnPYP8zWq5YzC0qveM8om1xllcx1nlNaAs0lQef22j/q61xuzWrbgh2Dn/RbsGWEBv899H/K3r+"
        "F3vSmIs5BPo7e/kF6+isuehHiPvDPuhDpbIPZBG4tXcHx7P35nfOcquy/e+DHn8XpCNb2nvsn1Htd75Xpv+MTK2o9BvuVLolea8TtY"
        "HpbCv1SOdb3J8hvxcTWoX1Y/fXLC288tkr93kq9RLXYbS6967bbNLrutQwi+g2V/i6KannxP5nqSy5lyPfmzsbXRk1+M++nJCnZezj"
        "tuHjY2/1J+6pf9/Rsr9d3qW2Pedr8h+e0yX6Na9CRLr0a8VbrP17+Bv70TavG+eWbvWJfvvzhGJFOYmfHUGlN8ZD/2XXQtCMI/IL2A"
        "7mPh81eQDpV9t7h/onJrVO5eUjgve/Vb5TvClobx2V9O+Vtw6+2OMH1AEL4beD/I/u+Sanr/WJ7brVzvl9utKW1t7Nb3zizNbu2wuN"
        "3K+bfcbr1nrK7d+q7mbfcSyd8y+BrVYrey9KrXbm1z2a33+9oPXnz038LQ584OoWgvVLYT2iyvhUvDxaahOWub3jtTm22atjm/VrZN"
        "Wd6q+/1ewZ/HLqxrehjf+UVf+miopau1i0B2CGc+eHR8gMjZB124M86MNdmW0L96j56yDJ2t+tls/5fDsBtRfMBT9bTgPAQaVybKKv"
        "r9H9hSxTvh8v8Kmz7avgmvVqvwR0jfeh/l/gebnomk");
}

/// model.save_weights("x.weights.h5"), Embedding(5, 3), LSTM(4), Bidirectional(GRU(3)), Dropout(0.1), LayerNormalization(), SimpleRNN(2)
std::string rnn_file() {
    return stored(
        "eNrtXW9sW1cVf3aSxk3TLmMVy6oWTNXSlJY2K6OktLFNm9BUCq1HNhZVg9hN0iadkxgnLV7ZwAsFvFLUqJQRTQJFME3RNKYIVShCjR"
        "3xYcoHhCqEUIQmZKFpiqYJRWhC+YA0ftf3Xsf32n7P858kxedIV+ed+879d+6595x37vPzyx1tX91at6POYOBwGNVGg5EOHwmYnFRp"
        "ed8nsE3gqMDTdplvS95rFPkPi/p1vqe+3t7OuD/SQLaTqOHYYRBUInS0f8XLcLegpT4t2FW+q/7QKMMB//P97ErqpafAdm1GlaK/DU"
        "J/m2pV/ef6a+TUXwLS33T9lftYtEbXNw7eErXbdfZcm82wp3b1aK3ajlRs5w61X84qla9D0AM1lTl/0m7pcqgXO4vNqDG2Q3rD/qF+"
        "Rj9msyVLNKRk6FDkWZ8mbJuJndTnJxffpLg/u9N83+rere5bp0+d67QZoqN6/wAXrwz3jg2ODPsDPY8zWm63WwUeHA5eGetJ7rZJBi"
        "EeY7PA/UMX+vv6BocvCbpaw4HRsSGGa7RyLL+ntz8QEPQmrd0Lg32DoX7RNdC1Wr8v+Huf+44/1NdzKXQlXa8lRnayetneFjnekVB6"
        "MaMuRznJL9vtC40ER66Mpdp/RI4jKZnhkdCQPzB4zc/6q4xD1j86OBQM9PeEhvltY5vIfyjjfrpUoI/baG8lICAgICAgICAgICAgsA"
        "aruHvzLjVeQFBZIOOWM4IOCjz1Ise54kzN46re5IpbrfyQ043Rj6eXDZ/hmM6DKlsvu1N6x2Fxp8onz4NScewi2+Xx9FqjWWaclvrN"
        "oUnQHWc49oj82VGVLzEqOyj0X/Lt1vgEbexV9X1Gi+Pr8V85zsQ1lc/xXdFPsX6bRH7LEyqfT9CRo+o6Htih8uVav/nZHTovI8hvfU"
        "u9n3WqfOU5L7Ol2lvU1ln4U2K9OWmOzEDad11ehZ6XbU1TAruJP6Hvl1Z+REsT+RG0z2T6Ec695fUjcvnNkf2qvbXS3+UjpL+kv5n6"
        "m9in8jVr9rI0fvCqnQzvVeufEvT8PpqjfOykLq9C7eTmtM2gSpS3pTHYhMdvs/MM+d6FfG9Dp6uwQzHOh52fFu9sOI1HHcaj30/xO5"
        "L37XZeoUPsaFW25c9xjhPaiMPrLPFml2H8BakJaV/cMJaA+5BuxAzjDvAJpEakCDp+E/ge8qfn0G/gV0FPIX87rheQqpEixzFbwJ91"
        "Q6puI/Jb1BlCmkGZbuQvtmI1thqRH+P+NuR7YkZkHNevo643kK6Dpwv50+DzIe3C9VvIa0D5fwN7gT2tvN1x0JMo8y7SHjYO0PdYX4"
        "H/CbwZZd8H9tzDPOHaifwEytUj778x3v591BXE9TLwH1287WrgXehTI/LvI82DNpDeQ2oG7QKPD/3ow/XbyFtA2SeR91ict/sW0msx"
        "Zr64LINICRev1zPH5VSL+ifAPzHHZXsU1wdx/3Xce4eNAflvAu8EXxsrj/yTrF03b3sG9ATaXcD138X8MOX6fYy3Vx3n8jwF/lO4/h"
        "VLoH8D2ohzebwCejHG5fgEUhS0l8kaeHaO39uD9KGY1waUqUf6MupIQKZvIP9HSLuRdx1lPgEcA93C6kHqxPVLyOsWY/9inMvrbozX"
        "xeaRtcPm4CzoAdT7Ku61i76yPjG9PMhkCb4V8M3HuHzZnP0DydnKZbyE++/EeDl/nI+f6cihOJcN6y+bv/fBMxVLyjryy7gReRtt/g"
        "70H4Tcp8DXx8q6uFwHWF+RwqwNYJ+L9/dNXB+J83bZ3BhuMR+4HwV2uPiaYHPY5+a6N8naFmvnrpg/1q9xF18brC4mKyb/7aj7by5e"
        "phbX7wF3MP1HXZ9k/UPZl+Ncx9i4llH210KP74q19IKbrzdWB9MntobYmoqgzRngb6D8X8F3J8brfA3X+1HmBRdff/9C/qyb6zSbWz"
        "aeZuSfjvPygRhfJ/9x8XXO5H0OeJub32f7hQP0ZewDL7n5tcfFZcfWJNObEeSvxPhaiwj9X0E/J5g+zvF++dg6nON6wNZvo1iTewQP"
        "239a3Hw/Y/vAhy7Ow/KYTP6MdIKtC/B+Ic7H/zTwETYvc3ytsrltE3OwCfc+YG3Mcf1eZuN38/U1husDQlYEBA826H5rYj/JpLDn1+"
        "zxFz1ubPX8OnuMnl/p+TXzdz1TR7PHX+TLz+X6XY9xPFv8hc4pCPLTX7mP+Y7p+sahXL/r8R1X24kKmnm16f1aOaryOb8k1tGxyo6/"
        "6HIoNP5SnSbsahM7qc+P5e9fPWQnaZ/JjPMutGa3k+U+p2g6mc1O5tbfyVOqfSeobP11SjulOXDynOJxgY9o9rOlyOc9p0utr0PQAx"
        "6ao3zspC6vUpxT1BjW5xRV2r6XSRd6TnHwAOeY10a8vucUXG+rVn8nftKcP3Xu12bOJ/ff5fZKiVOY61W1Jr/qkunVBwe0rWtD6FWm"
        "PHh/bTabMu4SjP9g9if06AbTj+z+uf4ep5V/E+kk/5z8m1X/RvoxA2ey++ep7xMkPxCw+t0BQa6+T1ygf77wNYpjERQfx2rqXIs4Vl"
        "XK3jSd1doRdNCrPjcs+1S+Rr94PuhV+z9/RuVbErSj8//TP9fHV4r3bTeZ2El9fqzs5HQX2UnaZzLPeya82e1kuc97lp8iO0lQvJ30"
        "dq2FnVw97/E+rbYTFvTkM2q/lrwqX8OTwj/tquw4li6HUnzHrdbETurzY2Un758nO0n7TOZ5z+wz2e1kuc97Gp/NZidz62/0m6p9J6"
        "hs/ZXPbeHzKl+5z3saurX6BN19nuYoHzupy6tQO+lIM2YOI/+4vPw+p04Xcd7zefHEoY14Y533hJ8155f24P63zPnk/pvoqQy9zfcc"
        "cVWPSqVX94ReBTaUXlnJw66N314yeTQdyu6RrLc8svvnevzQyr8JXiT/nPybzDhWd+/6xLFmL1Eci6D4OFbjxbWNYzUOqO14BO27rP"
        "ZrplflWxT0Sn9l++e6HAr1z7ekCXuziZ3U58fyvc8hspO0z2TGsSKX1yeOlRj+eHEsb5DiWKS/mXEsz9DaxrEWL6v1Gc+J/gzRHOVj"
        "J3V5lSKOVbeucazgoQchjuUZyS+ONfnt/OJY0yGKY5U3jmUcpjhWujwChx+kOJb+XVnL7x8+T/45+TdZvn94dX3888g1imMRFB/HSo"
        "TXIo6V9v3Dq2o7U4KeD9Mc5eOf6/Iq1D+vTVOCLSZ2Uv8OupWdXIqQnaR9JtNOdrxYXjspIe1/VpO0/r+q8n9U9f9Flf9Lmut/SPX/"
        "HS32fMpqHU39QJUfQWWvo9T7/xGVT4+nFauXur32aP9j4f0ex8EIzVE+9lqXV6H2+pE0o1pvWP8+Wf4P9Kain+vvHlY1UMLG+n2yPC"
        "+Vejsxbs4v99Wl66Sr5vGjcunVnx4IvbI89/oJ+btkpzPtdEs0u79b7vebJm9SXIig+LjQyo21iAutvt+0clNtx/lTsT5uqf2aiKp8"
        "s4JevFHZfqYuh0L9zLo0YW81iQvp82NlJ8O3yU7SPpMZF/LdKm9cKJednP9ZNjtp8v++P8/urRJUpv46Jb5tHo8p9ftNs7fU+hJy/d"
        "ymOcrHTuryKtROPpRmzLYZ1u9dyOdlu/b8bC/6Ofrdw6rmpSzuBojHrL7f5LyTXzwm/Io5n9x/o7+o1HhM9vd5cuHC9Wp7szozG0Ov"
        "rOJTpRv/nubsHuvGik/9D+XcQpw=");
}

/// model.save("x.h5"), Dense(4), Dense(2)
std::string mlp_file() {
    return stored(
        "eNrtW81P3EYUHy/L4pBQgZQKaJrWXdGUQ0TYQBsUaNkm0GylqEFNKqFGlePdNawVY2/8QSERKse06qGHHlBPHLlU6jGHtumRY9RD1S"
        "PH/gm90efxzNozay8bspGWZh6yZmfmzZvnmd97M/PGfFta+GSg/41+FJAsoywaRHE6JDRznc3T+nsklUj6mKR7GVrei+tGSPkgka/0"
        "sA3vfL64GGQOOWooQgTISNCrSKXFj5eCdJmFA9rPsHxrdlU31a91Y7XmuTFcFo/Z7xDBK4/rM6hE4PsaOguovK87mquu645r2BaUj0"
        "oSbjnY0EFm7CQXA7OE5RXJbxnLK2uV+7pVPVJOb0xOhtFrAMsJx6NiWyvGKsJ6oZby/spF8npa2O9BLswrbdqv/CY7b4JebfudpOtF"
        "juWr6par01QtIM+uq6a+DhhmLZvidbxN+y1lw3wtR+23RnB/BuxkBJnapu6olramu6ilnUhSw9biadwOg999sXy2pX2jtu0715bfQW"
        "37nUDHG9dv3ZQQacDzAU1NFN6fKHDvCeTZTqVGfETDbwA9yldMzXXxSOavKvnb+gNftzxDM/MXlXzoh6D8UZ4yuAyD52iGpZXNoMpz"
        "fB2Kqt5mXcdNAAE+rsnjt8YCmc4W7gDrkm0alc2U3lZMW/OmLue3oNrRVw3X0x29SgVYvmkGNRgMLhTc5V/nU6vuezeDaq6DsuZVaq"
        "pb07CudwNJF5Wpr2L6N/qGMreuOW5QuKKZbvCSjra6qldjBbRDI+hQDdGJm9p1D2YaRovwboHCvJYLgfGkjECV1nXHUPuW4QUjPQ2/"
        "tYpnrGvB6wXtPc2qBaJ98ANlQ3MjNUElC1yBAU0BNsZDmIwEnSdi9QkvcMO0Hdv7wjJWbGeNewVXx3MRTiKZAm1Dd6My2/e4wtavGb"
        "zACyr8pe7YLqto6z7JMAGDb2oO6ZXoj/VJrCGtoBMXI8TjGiVVPPA1sOCHeOrUhnpYj+OgUy10Hz4vN+HTNCxdcwRCTzxCAydd9g2z"
        "qobj2OTEt7bCNZyumSi2P+nl1kW6f8mlrJd9KesrPde+TtJoWbyERV4KXg3KT5H64TS+cHRQ/xF8aiGUeJrUj6bzEYksPesTe1pBgg"
        "QJEiTopNLtz24tSDgqQeJ5WTYOwMdNBCWThHoS46RL59l7kaPipDuKuOcQcdLme45fzrF80T6dtdfiC/mBngbuSqOs3DrJ/3CO4juk"
        "pQLLt0HyO1Os/oNFlm+G5Jev/b/mj8ab+fGK4s0DON4cxrGjgPPzxpuHY07iFD03ypHvkPBfNP5UL/QW8fNKe/5od0z4I+GPIn9E7b"
        "6oJN/bNPYNHd6X/H2e9R88jgWl7UuS/YCcD/PjY+35gX8vCD8g/EDzvqQ0xvLRYCEJV3ZoXxL5gYN3WD/A41hQmh8Iv+OgAyeRm3Mp"
        "ExbQe1wa527Oj+CmQ8rbpExBwzIa/obU98IMBfWZTChQJgjpkYrkin6S02ijC869mWg9m2zNT/H3z7sCSyxNfoTQn/CMw/PeUxghSK"
        "vwfPc7Qj9COgfPCDzbcwh9D+mvUL73G8w/pD9BfhfKz8LvfXiy8GzPwm4Z0gvzgM55tP0zyHSeinEWJEiQIEGCunlfGe77aNwq27F9"
        "ZH2cjUBQetxl45F8DzA4zWp71Hl7+Yo4b4vzdvN5+8kUy9fpewAaH+Lj+J2OX4/GwB18gxSPZ/ej9LjVH8SODj5oz47uzQo7EnbUHL"
        "9GV1g++j3fy4pf70yz9snjWFDaeprsB/ZnSDzmant+4MmHwg8IP9C8nsqzLN/Ljl/vzrB+gMexoHbPGWz8OsvtL/j88c8d2+TcoXAa"
        "dVf8Gs235qf425sTWHqe82umYzjaHU9egU7G+fUZ+U6nxpxfUfr/6wsS621svaWo37jG4y2kpQ71S/eH/Pdl7P/FN59fh5R5omMRTZ"
        "9G04fkApT6AZ7+A6xj9y4=");
}

constexpr auto cnn = [](auto s, auto x) {
    auto h = tg::eval(relu(tg::batch_normalization(s / "norm", tg::conv2d(s / "c1", x, {.filters = 4}))));
    h = tg::separable_conv2d(s / "separable", h, {.filters = 3, .kernel_size = 2});
    h = tg::conv2d(s / "other", h, {.filters = 2, .kernel_size = 2, .use_bias = false});
    return tg::dense(s / "score", flatten(h), {.units = 2});
};
constexpr auto rnn = [](auto s, auto x) {
    auto h = tg::embedding(s / "table", x, {.input_dim = 5, .output_dim = 3});
    h = tg::lstm(s / "first", h, {.units = 4, .return_sequences = true});
    h = tg::bidirectional(s / "both", h, tg::gru_layer_options{.units = 3, .return_sequences = true});
    h = tg::layer_normalization(s / "norm", h);
    return tg::simple_rnn(s / "last", h, {.units = 2});
};
constexpr auto mlp = [](auto s, auto x) {
    return tg::dense(s / "dense_1", tanh(tg::dense(s / "dense", x, {.units = 4})), {.units = 2});
};

} // namespace

TEST_CASE("a .keras file: a network of convolutions, its result is Keras's") {
    const support::temporary_folder folder;
    auto net = tg::instance(cnn, tg::spec<float, tg::dyn, 6, 5, 2>{});
    const auto report = tg::io::load_keras(net, folder.write("cnn.keras", cnn_file()));
    CHECK(report.matched.size() == 12);
    CHECK(contains(report.text(), "c1/kernel <- layers/conv2d/vars/0\n"));
    CHECK(contains(report.text(), "other/kernel <- layers/conv2d_1/vars/0\n"));
    CHECK(contains(report.text(), "norm/moving_variance <- layers/batch_normalization/vars/3\n"));
    CHECK(close(net(spread({1, 6, 5, 2})), {-2.03986645f, -0.500133276f}));
}

TEST_CASE("a .weights.h5 file: recurrent layers in both directions") {
    const support::temporary_folder folder;
    auto net = tg::instance(rnn, tg::spec<std::int32_t, tg::dyn, 4>{});
    const auto report = tg::io::load_keras(net, folder.write("rnn.weights.h5", rnn_file()));
    CHECK(report.matched.size() == 15);
    const tg::tensor<float> y = net(tg::tensor<std::int32_t>{{0, 1, 4, 2}, {3, 3, 2, 0}});
    CHECK(close(y, {-0.938700259f, -0.117470466f, -0.914472818f, -0.0270514041f}));
}

TEST_CASE("an .h5 file from before Keras 3") {
    const support::temporary_folder folder;
    const auto path = folder.write("mlp.h5", mlp_file());
    auto net = tg::instance(mlp, tg::spec<float, tg::dyn, 3>{});
    CHECK(contains(tg::io::load_keras(net, path).text(),
                   "dense_1/kernel <- model_weights/dense_1/sequential/dense_1/kernel\n"));
    CHECK(close(net(spread({2, 3})), {-0.743118942f, -0.425839782f, -1.10565507f, -0.674993932f}));
    const auto arrays = tg::io::read_keras(path);
    REQUIRE(arrays.size() == 4);
    CHECK(arrays[3].first == "dense_1/bias");
    CHECK(arrays[2].second.shape == std::vector<std::int64_t>{4, 2});
}

TEST_CASE("what does not fit is listed, and nothing of the model changes") {
    const support::temporary_folder folder;
    auto net = tg::instance(mlp, tg::spec<float, tg::dyn, 3>{});
    const auto before = net.variables()["dense/kernel"].template value<float>().to_vector();
    const auto path = folder.write("rnn.weights.h5", rnn_file());
    const std::string text = message_of<tg::error>([&] { tg::io::load_keras(net, path); });
    CHECK(contains(text, "rnn.weights.h5': does not fit the model: no tensor for dense/kernel, dense/bias, "
                         "dense_1/kernel, dense_1/bias; "
                         "nothing in the model for layers/bidirectional/forward_layer/cell/vars/0"));
    const auto report = tg::io::load_keras(net, folder.write("cnn.keras", cnn_file()),
                                           {.layers = {{"score", "dense_1"}}, .strict = false});
    CHECK(report.matched == std::vector<std::string>{"dense_1/kernel", "dense_1/bias"});
    CHECK(net.variables()["dense/kernel"].template value<float>().to_vector() == before);
    CHECK_THROWS_AS(tg::io::load_keras(net, path, {.layers = {{"nothing", "dense"}}}), tg::argument_error);
}

TEST_CASE("files that are no Keras files") {
    const support::temporary_folder folder;
    const auto objection = [&](const std::string& bytes) {
        const auto path = folder.write("x.keras", bytes);
        return message_of<tg::data_error>([&] { tg::io::read_keras(path); });
    };
    CHECK(contains(objection("hello"), "x.keras': not an HDF5 file, or a damaged one"));
    CHECK(contains(objection(""), "x.keras': not an HDF5 file, or a damaged one"));
    CHECK(contains(objection(mlp_file().substr(0, 3000)), "not an HDF5 file, or a damaged one"));
    const std::string cnn_bytes = cnn_file();
    CHECK(contains(objection(cnn_bytes.substr(0, cnn_bytes.size() / 2)), "not a zip archive, or a truncated one"));
    {
        tg::io::zip_writer writer(folder.path() / "other.keras");
        writer.add("config.json", "{}");
        writer.commit();
    }
    CHECK(contains(message_of<tg::data_error>([&] { tg::io::read_keras(folder.path() / "other.keras"); }),
                   "a zip archive, but not a .keras file: model.weights.h5 is missing"));
    CHECK(contains(message_of<tg::data_error>([&] { tg::io::read_keras(folder.path() / "none.h5"); }),
                   "none.h5': no such file"));
}

TEST_CASE("layers are ordered by number, and forward before backward") {
    using tg::io::detail::keras_before;
    CHECK(keras_before("dense", "dense_1"));
    CHECK(keras_before("dense_2", "dense_10"));
    CHECK(!keras_before("dense_10", "dense_2"));
    CHECK(!keras_before("dense", "dense"));
    CHECK(keras_before("forward_layer", "backward_layer"));
    CHECK(keras_before("a1b2", "a1b10"));
}

} // namespace keras_test
