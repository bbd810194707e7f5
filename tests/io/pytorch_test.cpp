#include <tapegraph/io/pytorch_weights.hpp>
#include <tapegraph/nn/instance.hpp>
#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/depthwise_convolution.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>
#include <tapegraph/nn/layers/transposed_convolution.hpp>
#include <tapegraph/tapegraph.hpp>

#include <support/base64.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pytorch_test {

namespace tg = tapegraph;
using support::contains;
using support::from_base64;
using support::message_of;
using tg::io::host_array;

namespace {

// Files of PyTorch 2.15. The first is as torch.save wrote it; of the others the pickle, the byte order and the storages are there, deflated,
// without what else torch.save packs.

/// torch.save(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).state_dict(), ...)
std::string mlp_file() {
    return from_base64(
        "UEsDBAAACAgAAAAAAAAAAAAAAAAAAAAAAAAQABIAYXJjaGl2ZS9kYXRhLnBrbEZCDgBaWlpaWlpaWlpaWlpaWoACY2NvbGxlY3Rpb2"
        "5zCk9yZGVyZWREaWN0CnEAKVJxAShYCAAAADAud2VpZ2h0cQJjdG9yY2guX3V0aWxzCl9yZWJ1aWxkX3RlbnNvcl92MgpxAygoWAcA"
        "AABzdG9yYWdlcQRjdG9yY2gKRmxvYXRTdG9yYWdlCnEFWAEAAAAwcQZYAwAAAGNwdXEHSwx0cQhRSwBLBEsDhnEJSwNLAYZxColoAC"
        "lScQt0cQxScQ1YBgAAADAuYmlhc3EOaAMoKGgEaAVYAQAAADFxD2gHSwR0cRBRSwBLBIVxEUsBhXESiWgAKVJxE3RxFFJxFVgIAAAA"
        "Mi53ZWlnaHRxFmgDKChoBGgFWAEAAAAycRdoB0sIdHEYUUsASwJLBIZxGUsESwGGcRqJaAApUnEbdHEcUnEdWAYAAAAyLmJpYXNxHm"
        "gDKChoBGgFWAEAAAAzcR9oB0sCdHEgUUsASwKFcSFLAYVxIoloAClScSN0cSRScSV1fXEmWAkAAABfbWV0YWRhdGFxJ2gAKVJxKChY"
        "AAAAAHEpfXEqWAcAAAB2ZXJzaW9ucStLAXNYAQAAADBxLH1xLWgrSwFzWAEAAAAxcS59cS9oK0sBc1gBAAAAMnEwfXExaCtLAXN1c2"
        "IuUEsHCH4yV6TZAQAA2QEAAFBLAwQAAAgIAAAAAAAAAAAAAAAAAAAAAAAAFwAiAGFyY2hpdmUvLmZvcm1hdF92ZXJzaW9uRkIeAFpa"
        "WlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWjFQSwcIt+/cgwEAAAABAAAAUEsDBAAACAgAAAAAAAAAAAAAAAAAAAAAAAAaADcAYX"
        "JjaGl2ZS8uc3RvcmFnZV9hbGlnbm1lbnRGQjMAWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpa"
        "WlpaNjRQSwcIP3dx6QIAAAACAAAAUEsDBAAACAgAAAAAAAAAAAAAAAAAAAAAAAARAD8AYXJjaGl2ZS9ieXRlb3JkZXJGQjsAWlpaWl"
        "paWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpsaXR0bGVQSwcIhT3jGQYAAAAGAAAA"
        "UEsDBAAACAgAAAAAAAAAAAAAAAAAAAAAAAAOAD4AYXJjaGl2ZS9kYXRhLzBGQjoAWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWl"
        "paWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWpaKEr+lMOm+Azl9vm/VC78VQQa99gcCv5m6oD6iE5A+MErfPa5N5T7Xmme9lA+x"
        "PlBLBwgRTo6dMAAAADAAAABQSwMEAAAICAAAAAAAAAAAAAAAAAAAAAAAAA4AFABhcmNoaXZlL2RhdGEvMUZCEABaWlpaWlpaWlpaWl"
        "paWlpaMwTPvlkC6b1ryQO/x/8/vVBLBwjm49WEEAAAABAAAABQSwMEAAAICAAAAAAAAAAAAAAAAAAAAAAAAA4ANABhcmNoaXZlL2Rh"
        "dGEvMkZCMABaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWloSF6a+TPvlPsDTsT4o7b8+sN4XPk"
        "YLkr5OC+Y+5Mz5vlBLBwiT56rqIAAAACAAAABQSwMEAAAICAAAAAAAAAAAAAAAAAAAAAAAAA4AJABhcmNoaXZlL2RhdGEvM0ZCIABa"
        "WlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWhBko77M45++UEsHCJhkIBsIAAAACAAAAFBLAwQAAAgIAAAAAAAAAAAAAAAAAA"
        "AAAAAADwA7AGFyY2hpdmUvdmVyc2lvbkZCNwBaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpa"
        "WlpaWlpaMwpQSwcI0Z5nVQIAAAACAAAAUEsDBAAACAgAAAAAAAAAAAAAAAAAAAAAAAAeADIAYXJjaGl2ZS8uZGF0YS9zZXJpYWxpem"
        "F0aW9uX2lkRkIuAFpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWloxMDc3ODYyNzI5Nzk5ODU0MTYy"
        "NTA5MjM3NjU3ODcxNjE5ODgyMDA1UEsHCFH4KCIoAAAAKAAAAFBLAQIAAAAACAgAAAAAAAB+Mlek2QEAANkBAAAQAAAAAAAAAAAAAA"
        "AAAAAAAABhcmNoaXZlL2RhdGEucGtsUEsBAgAAAAAICAAAAAAAALfv3IMBAAAAAQAAABcAAAAAAAAAAAAAAAAAKQIAAGFyY2hpdmUv"
        "LmZvcm1hdF92ZXJzaW9uUEsBAgAAAAAICAAAAAAAAD93cekCAAAAAgAAABoAAAAAAAAAAAAAAAAAkQIAAGFyY2hpdmUvLnN0b3JhZ2"
        "VfYWxpZ25tZW50UEsBAgAAAAAICAAAAAAAAIU94xkGAAAABgAAABEAAAAAAAAAAAAAAAAAEgMAAGFyY2hpdmUvYnl0ZW9yZGVyUEsB"
        "AgAAAAAICAAAAAAAABFOjp0wAAAAMAAAAA4AAAAAAAAAAAAAAAAAlgMAAGFyY2hpdmUvZGF0YS8wUEsBAgAAAAAICAAAAAAAAObj1Y"
        "QQAAAAEAAAAA4AAAAAAAAAAAAAAAAAQAQAAGFyY2hpdmUvZGF0YS8xUEsBAgAAAAAICAAAAAAAAJPnquogAAAAIAAAAA4AAAAAAAAA"
        "AAAAAAAAoAQAAGFyY2hpdmUvZGF0YS8yUEsBAgAAAAAICAAAAAAAAJhkIBsIAAAACAAAAA4AAAAAAAAAAAAAAAAAMAUAAGFyY2hpdm"
        "UvZGF0YS8zUEsBAgAAAAAICAAAAAAAANGeZ1UCAAAAAgAAAA8AAAAAAAAAAAAAAAAAmAUAAGFyY2hpdmUvdmVyc2lvblBLAQIAAAAA"
        "CAgAAAAAAABR+CgiKAAAACgAAAAeAAAAAAAAAAAAAAAAABIGAABhcmNoaXZlLy5kYXRhL3NlcmlhbGl6YXRpb25faWRQSwYGLAAAAA"
        "AAAAAeAy0AAAAAAAAAAAAKAAAAAAAAAAoAAAAAAAAAgwIAAAAAAAC4BgAAAAAAAFBLBgcAAAAAOwkAAAAAAAABAAAAUEsFBgAAAAAK"
        "AAoAgwIAALgGAAAAAA==");
}

/// {"model": ..., "epoch": 7, "lr": 0.5, "note": "text"} of conv1 = Conv2d(2, 4, 3), bn1 = BatchNorm2d(4), dw = Conv2d(4, 8, 3, groups=4,
/// padding=1, bias=False), up = ConvTranspose2d(8, 3, 2, stride=2), ln = GroupNorm(1, 3), fc = Linear(144, 2)
std::string cnn_file() {
    return from_base64(
        "UEsDBBQAAAAIAAAAIQCBpskg6gIAADsFAAAQAAAAYXJjaGl2ZS9kYXRhLnBrbF2UZ1vUQBSFt1F2RbFj7yVYkF5sWBDRAZVgiXXJJm"
        "GzEhJOcrNgiX1R1A/8RH+Kk5mAT9wP++S5e897z8y5m0+5CBlFa8pkMgueaTnIGobnOJZBNc8NSvd90/Itc6xmUAm5ThV5RWvjvYbn"
        "1nu6lqxa1SYUDPJ8w+4qh1RzglLZtyphzTHLZLmB55frvSU0KYrWwnUB79SrFpqlpDTueDrNyGIJLVqW93SjVcvHMxZDFNkEoTTNMg"
        "orsBzLszxhk8K2syJ/zhLaVu3Y1WbCFhXtWmnDWqWmB9hq87l2sy25PdhmF1mBsJ3zWKGBHSzbwE5J2EXYraJDECruxtH2pAi92CsJ"
        "+xLC/phwQBIOEg6pOKy1JgTh4EhK34ejUn8s0R+P9Sek/iThlIrT2tZE74euW3Or5QVLd6GkOP3olJwzCedszDknOecJXSouaO3/ce"
        "q6j+4UZgA9EtObYPpiTL/EDBAGVQxpHQnGDRfKFZ0M2wrK5OvGvGViWOKSLCc9t7oR5YiYMIiLfALP6RKf0NkpyZcJV1Rc1Yq8wVxa"
        "v+nRlLUhXLNF9tdF9q0sK7O/ofDkk+xvStwY4ZaKcYELF9dxt1O4YUxw3CzhToLL82XKEe4qrE0sFscxiZskTKm4J7aV40SK91OwET"
        "zgMG5mOr62fANqfG0zUv6Q8EjFY+HGcdfdPNkA5OJF7IYmCU8TwrOY8FwSXhBeqnglDHCCMFBO63swK/V6oq/EekPqTYKlYk44mDPW"
        "HVTThF7YdnHqCD92LUbk2NoKXrM1ll3BvMQ4hAUVrrDBMcKGl4b0YZHb4NcIwWjAj20EUk+EUEU9jLAkrPA9Jt3UScey+P2NovFqBm"
        "8jvBND6pYf8HcO3rNsIN5H4o+MKMIHW9TychPxMcInXskFwoW5hM8RvsiWnAgNXyN8+1dwXDQirPwrzBn4HuGHKIRBRQyzFj3DxiqT"
        "R3N8/Lw9+icjPlqBf7keWfglHslaJvwOu/4CUEsDBBQAAAAIAAAAIQCFPeMZCAAAAAYAAAARAAAAYXJjaGl2ZS9ieXRlb3JkZXLLyS"
        "wpyUkFAFBLAwQUAAAACAAAACEANYKt+SUBAAAgAQAADgAAAGFyY2hpdmUvZGF0YS8wASAB3/6CF8i9ZYFAPbXTNr7x8Tm+A9vmveJP"
        "Ez4kFi6+XnlYvh8wUb7cie29p6p9vYpFb76vAOK97JSUO4UlHz1pZwq9s+7avKUFHb6oTPc9EpRovXIFJb4ngGi9d+AGvXopXz6Qkv"
        "s9aOrCvd33CL0bSFU+1w4bPnG3cD2wKK29UNRIPqbPzj2Z/da9X0grPlyeiTysfzK+b/XVvW3DNL7Y50e+aNC8Ox33LL71oQA+IOLX"
        "PcSsTz0o30Y+f/javWhZZjvmThQ+ltumPS3x6TzF0kk+NwdcPdlkIj7+AFC+UvtPvnDZWb6smlo8TNJMPlehUr7WEsA9sf5UvgtmIL"
        "7Pm6S9i0rEvWGUjj0RYkq+d61uPuy+DD3wR6g9sgojvlcyBT5QSwMEFAAAAAgAAAAhANjPzwASAAAAEAAAAA4AAABhcmNoaXZlL2Rh"
        "dGEvMcvLSdyrofNhL7+5iu3aZydsAVBLAwQUAAAACAAAACEAPgV6nw8AAAAQAAAADgAAAGFyY2hpdmUvZGF0YS8yY2BgsGdgaADiA0"
        "DM4AAAUEsDBBQAAAAIAAAAIQDEqYijEwAAABAAAAAOAAAAYXJjaGl2ZS9kYXRhLzM7e+aM7dkzPnazZs60O3vmjB0AUEsDBBQAAAAI"
        "AAAAIQAPiWNtEgAAABAAAAAOAAAAYXJjaGl2ZS9kYXRhLzTTWB5k82al6l4lzrjdHe0GtgBQSwMEFAAAAAgAAAAhAHJwHrESAAAAEA"
        "AAAA4AAABhcmNoaXZlL2RhdGEvNTvtGmLPEulv/0fRz179dbg9AFBLAwQUAAAACAAAACEAitit6wUAAAAIAAAADgAAAGFyY2hpdmUv"
        "ZGF0YS82Y2aAAABQSwMEFAAAAAgAAAAhAAaMe0slAQAAIAEAAA4AAABhcmNoaXZlL2RhdGEvNwEgAd/+VpcQPbvW7r1g4X09IBIEvl"
        "Ag570WoP29MF1LPlCVbr72NhQ+C+swPmbMYr52oYG+Nk5jvhZfkL6kSY8+uG+WPhajPr3rB6A+a1/BPdxsp74UKJy+c9Ikvr88qr5r"
        "lxy+K6K4PQDz9Lsg9H69ALinPOsInD5WW207WKArPgaLpL0MCIC+QImFPUAyHT6TeEY+8pOgvoDMNL2ecKS+ANCFO6sicTxALN4960"
        "PqvYBzR73rgKc9B1Clvt7iJz4W+qQ+a+lyvoNupj72Rk89mNuoPgJ1lT7SH5K+knuAPgDTOjwWAa09prr3vejLiL72pwI9tuq9PZOn"
        "Kz4nKI++kCSlvlBrIj6mq4i9AE6hu8Agsb1WHTU6S3BhPbSdnb4Gyvs9UEsDBBQAAAAIAAAAIQAgTvKnhQEAAIABAAAOAAAAYXJjaG"
        "l2ZS9kYXRhLzgBgAF//kIJAj2HfQg+CKoYvs8eVz5DH0U+hHQUvqJpgT7kLBg90HyCPvJZhj7FcDk9WjY/PeQouT2W1j0+m/aGvjr0"
        "7ToyM40+YLdQvhJ+Jr7pTPc8psTVPajGHj58bYU8LXeLPXDzBb4cBIw+QMxCvsI7QD61dyA+XRWBPvIvgz7kMMS92ypTPmC6V770JE"
        "4+m/Y1vinsSL4ODki+wcyPPiuvrj0/AU6+osJdvrCM9DwmCX+9MwWaPeUJOj7qvzq+NjqGvp2m8zzPFEU+F/AzPiKih7ves529V368"
        "Pa+JTT6GoX6+OOrfvN2AXz7zvWM+xd+IPp9K5D3l8ZE+N+2OvrTFXz3A/ik9EN5LPsZ7az1dUz0+36+BvkYcAL0Hnt09fZY9PtsMjD"
        "0Z/j4+E664vQSZy7xmrIo+tiNFPtGOTz66GYC+6fh+u5ZygL5NLoY+D09vPtQZJT7IxDW+gIEovjHrQL5wy9o9TFByPp4/Gr0BR4u+"
        "Qp2BvUEGDz0TNIc8MKIgPlBLAwQUAAAACAAAACEAPutOuA4AAAAMAAAADgAAAGFyY2hpdmUvZGF0YS85u5u63la9eOHeayqB+wBQSw"
        "MEFAAAAAgAAAAhALGWDrIMAAAADAAAAA8AAABhcmNoaXZlL2RhdGEvMTBjYGiwZ2BgcAAiBwBQSwMEFAAAAAgAAAAhAKlWyhgMAAAA"
        "DAAAAA8AAABhcmNoaXZlL2RhdGEvMTFjYGCwZ2Bg2A/EDABQSwMEFAAAAAgAAAAhACPp94uSAQAAgAQAAA8AAABhcmNoaXZlL2RhdG"
        "EvMTJNlLGNhEAMRV0CJWwJ5MtIlEAJlEAJExISEk5IDwcSpVDK+c88aznJWmPs//1tc2aWzT6X2eo2uhU3G8zusz1n98392f0umR1X"
        "e87ub269W/bn4nmL8v9avANrTa1ucXvOFld+xfeagq9au8D4mk2e/0mNP6u388er2AS/4uo9Bxf1llovhVrVxLuqidwdHOFJ44T+Xr"
        "/MpiMmHukUrmI9+eIVrrREPzs9KSYM8c1w6FeaNY8jNYx7aPbArZ40i8gpzE64B/u6X3t52NeMptAp25mT8o2+qj+gR/Owxik/sHb0"
        "1b2DkeFSr9rpGrthr8KQ3kwPGzehnJjVjL6Jmp6aiRuoN8UtLHEDZ9Oh2ehuhHdQs7DDjZ0t4Mkf0aKamTu82VHHfoSvW3vQXtBcuD"
        "3N6T0LWejI3PES38K38UjzipaVXuTvxOI7qjEwNdOR/mIP4iiJO75+s1BPM7vcuInxddMLXFvMkZmLU+/qH3MucFQc+o3cET69Dw31"
        "xl9YI3d0vL6TD9/HAYel3/+HFa77/AdQSwMEFAAAAAgAAAAhAFCiXHkKAAAACAAAAA8AAABhcmNoaXZlL2RhdGEvMTObMHOFzYJ78T"
        "YAUEsBAhQDFAAAAAgAAAAhAIGmySDqAgAAOwUAABAAAAAAAAAAAAAAAIABAAAAAGFyY2hpdmUvZGF0YS5wa2xQSwECFAMUAAAACAAA"
        "ACEAhT3jGQgAAAAGAAAAEQAAAAAAAAAAAAAAgAEYAwAAYXJjaGl2ZS9ieXRlb3JkZXJQSwECFAMUAAAACAAAACEANYKt+SUBAAAgAQ"
        "AADgAAAAAAAAAAAAAAgAFPAwAAYXJjaGl2ZS9kYXRhLzBQSwECFAMUAAAACAAAACEA2M/PABIAAAAQAAAADgAAAAAAAAAAAAAAgAGg"
        "BAAAYXJjaGl2ZS9kYXRhLzFQSwECFAMUAAAACAAAACEAPgV6nw8AAAAQAAAADgAAAAAAAAAAAAAAgAHeBAAAYXJjaGl2ZS9kYXRhLz"
        "JQSwECFAMUAAAACAAAACEAxKmIoxMAAAAQAAAADgAAAAAAAAAAAAAAgAEZBQAAYXJjaGl2ZS9kYXRhLzNQSwECFAMUAAAACAAAACEA"
        "D4ljbRIAAAAQAAAADgAAAAAAAAAAAAAAgAFYBQAAYXJjaGl2ZS9kYXRhLzRQSwECFAMUAAAACAAAACEAcnAesRIAAAAQAAAADgAAAA"
        "AAAAAAAAAAgAGWBQAAYXJjaGl2ZS9kYXRhLzVQSwECFAMUAAAACAAAACEAitit6wUAAAAIAAAADgAAAAAAAAAAAAAAgAHUBQAAYXJj"
        "aGl2ZS9kYXRhLzZQSwECFAMUAAAACAAAACEABox7SyUBAAAgAQAADgAAAAAAAAAAAAAAgAEFBgAAYXJjaGl2ZS9kYXRhLzdQSwECFA"
        "MUAAAACAAAACEAIE7yp4UBAACAAQAADgAAAAAAAAAAAAAAgAFWBwAAYXJjaGl2ZS9kYXRhLzhQSwECFAMUAAAACAAAACEAPutOuA4A"
        "AAAMAAAADgAAAAAAAAAAAAAAgAEHCQAAYXJjaGl2ZS9kYXRhLzlQSwECFAMUAAAACAAAACEAsZYOsgwAAAAMAAAADwAAAAAAAAAAAA"
        "AAgAFBCQAAYXJjaGl2ZS9kYXRhLzEwUEsBAhQDFAAAAAgAAAAhAKlWyhgMAAAADAAAAA8AAAAAAAAAAAAAAIABegkAAGFyY2hpdmUv"
        "ZGF0YS8xMVBLAQIUAxQAAAAIAAAAIQAj6feLkgEAAIAEAAAPAAAAAAAAAAAAAACAAbMJAABhcmNoaXZlL2RhdGEvMTJQSwECFAMUAA"
        "AACAAAACEAUKJceQoAAAAIAAAADwAAAAAAAAAAAAAAgAFyCwAAYXJjaGl2ZS9kYXRhLzEzUEsFBgAAAAAQABAAyQMAAKkLAAAAAA==");
}

/// e = Embedding(5, 3), l = LSTM(3, 4, num_layers=2), g = GRU(4, 3, bidirectional=True), r = RNN(6, 2)
std::string rnn_file() {
    return from_base64(
        "UEsDBBQAAAAIAAAAIQDjq3bqOwMAAOAGAAAQAAAAYXJjaGl2ZS9kYXRhLnBrbGXV+XsTVRQG4CQNXUKhBQqCgoBWSFFLku4CUrCWZZ"
        "TCBXFcIKTJmAkODd/MSVk0bJpgcWERBTfAFUUFN8Dln/PeOfOE3Panee7kzpvznXvmmVORbLboOFaWCsUJLzbm5izXyo0UshRDqEsg"
        "HDebQ6GQ1X3EKuRtQiRLRTdrd6dLVHC8WNq1xksFJ5cma8IruunJVAwN8bjZJJ/x5M5M3kKUH4mNOsUM7eabMcwyw3JPAo1mg7xmD5"
        "fQZLQRmncZIWOW0VBFi9FghKuITdmqjtmEVoE55ly52QmKSRfstJPAXFv+ox21WUyizW4yEoR2JbUraR5L81laQOgQWKhLti8t0qQU"
        "HpLSMGExS9EqlhhRJT3M0iOEpQLLzFZfGi9kvKCiRzWnB8ul005Y4TsVrDTCFTzGxuOEToEn6g2uZZVm9GI1G/HA6FLGGjaeJDwl8P"
        "TM3iTRrSl9WMuJErVESU6UYqmH0CvQN7M3SfRrUj8GWBqsSUMsPcPSOsJ6gQ3Te5PEs5ozgI2cazjItUnl2szGc4QRgeen9yaJUc0Y"
        "xBY2tgbGNmVsZ8MgvCDwop8or8/NDk0ZwphUOgk7ldKiEu3iRIKl3YQ9Ai/pEp/V3poUUROYwMuSktNhMiVH8BUewVeZeo3wusA+P1"
        "i+fnD261ASaQm1EA74UAUZlWyckSwhJ2DVI1zNGzqSQp4RO0AKCjnIyJsER+CQuWhGe+SbPWm5noUJnetBkft0uNYncJ9cJj0CCZR0"
        "0tbISZ3sxRHu19Fav45xv44z+RbhbYGy2TGtXzXwhA724SRHPhVEPq0in2HsHcK7ApV6TK+uqmP9OMvYewE2pbBzjL1P+EDgQ38oXH"
        "28PtKZAZyXTCvhgmIiRmMVF41GFfISUx8TLgt8olN8op/q1CCuSCpKuMpUpIrP5EVSnzP1BeFLga/80XDr5+uaDg3huoQihBs+VMHX"
        "Kto3jHxL+E7g+3qEq/lBQ1IJ3GTkxwD5SSG3GPmZ8IvAr6Uybpstcnf6kEWZXIYyuOP//lvclHdD+L2MP/yPhjoC+SXCn0bY899LC3"
        "+VcdeurR3cK+P+g3Uef5fxz4O1i3/L+M9fl7zx7v8BUEsDBBQAAAAIAAAAIQCFPeMZCAAAAAYAAAARAAAAYXJjaGl2ZS9ieXRlb3Jk"
        "ZXLLySwpyUkFAFBLAwQUAAAACAAAACEAX6XEUUEAAAA8AAAADgAAAGFyY2hpdmUvZGF0YS8wATwAw/8KZ0Y+bxftvebbHb9uuzy/Am"
        "uSP0VftT8L29C/rBpYPos+qD9s7cq/Rfynv3cKuT/yJSO/pkzUvR5c/D9QSwMEFAAAAAgAAAAhALZsQ/HFAAAAwAAAAA4AAABhcmNo"
        "aXZlL2RhdGEvMQHAAD//xhapPmRuv77en9A+es2jPswX1z4UR8S+4NSrviShcz7w9+6+yAX9Pjj32T3wPYQ9yuzavsApIz54Klw+gH"
        "aiPQ489j4wwxk+4gDjvuIY1z7U1i0+ZEB0vmAn67428JE+WEjzPma+0b5g2d88BLE3PkTJcb4QD+C9WPCqvqgOcr4GY+m+gNs9vPzJ"
        "lz7kBXk+En3wPizV4L5w/Xu90j/5PvCtpz38YRC+XI7mvpxBbj4gWcI+nEfNPgpQ1j7Qecg9UEsDBBQAAAAIAAAAIQC+EYSyBQEAAA"
        "ABAAAOAAAAYXJjaGl2ZS9kYXRhLzIBAAH//gB2tj7A4AC+COfPPiA5L73gKtO9XIJ+vmZNiD5sKE8+PtaiPvyZo754HYi+TELyPi4X"
        "jr5aAJK+tP0Ivrh7Jb4eGa6+6uHOPnBIZD2QbWk+2OK9Pibjpb48bcM+hD6AvqgHo73Wu8E+hgbsPvi64D6CO5M+bvHtPvR5OL5QWg"
        "K9yB4vvlCGFr0wBnm9QsaIPrL1rz5WWbi+8lyNvsB3Hb7w4og9yL9Gvkw4n74IB7u93Nt5voCJYTyigb2+gPv/vezpPL7wco29WiXJ"
        "Pnbdpz6gOSW+5rTqvhQdt74qZsS+gFFCvYRfY77A57K+YArjPcDKAz3Yg5m9yJk5vl4x2j5QSwMEFAAAAAgAAAAhAKDqNYJFAAAAQA"
        "AAAA4AAABhcmNoaXZlL2RhdGEvMwFAAL//RJ/2voArQ7wArm0+zr+0PvK23r5QWaC99n/VPoCQqD0A0Ro+4DtivrSrsT5Q/z++BNuJ"
        "vko16D54oQc+ADViu1BLAwQUAAAACAAAACEAnlFdF0UAAABAAAAADgAAAGFyY2hpdmUvZGF0YS80AUAAv//2aLK+uKjivdSoxL6YPq"
        "y+2KWSvZD2xT2IwtG+ts74PjpIvD5QPu6+8ASgPj6emb5InNC+ntXvPujiTb501ym+UEsDBBQAAAAIAAAAIQAJmwcFBQEAAAABAAAO"
        "AAAAYXJjaGl2ZS9kYXRhLzUBAAH//vA2fz0ospA+EIsdPQSYCb6ApC09wKKEvlw2ur40UAU+wM1XPexnfj5END6+3Ab9vmAW/r1etf"
        "e+oD4hvegcej4wfT096OKSPlj/vj1wjVs+pm/mPohdmD0gaKo9uL5Pvuahnz5IwNY+rs6xvih6+D6Acho+sOeOvcJL6r7i1f++CBnJ"
        "vtQj1r50t6q+3BkVvoJ/1L5EA9a+IO9jvXxi175gKDm9yHGuPZhUwj2Ap6A+ELyLPvCWj74UcCy+QJ47PI4L2D4wfHg+2EKPvlBMcL"
        "1AFrk9KNMxPqhAPr4IqOC+cCacvgDUjDzisq6+uIEOPorroD6A7rK7fE2GPtZTsz5QSwMEFAAAAAgAAAAhAHXHghYFAQAAAAEAAA4A"
        "AABhcmNoaXZlL2RhdGEvNgEAAf/+VnGjPjjP874ABug+CGIHPvzI/b6Iz/49SkiwvoL17D5a/co+UtqovgK+vb4QEBA9pKEHvsg6Wz"
        "5Ue+6+Jsy9PmCjNz0A5iA8gEqjvqCJ/jyS7K0+Amf5Pu7Npb4Am1a+QPPUPS7zjz6y3ta+HBI/vnhiy77ePes+vLguvrb4mT5IjIs+"
        "IAc9PQi7xz2uiKY+2F2Bvfi5hj7gQoi9gOQAPIgELz7E9+a+zMZzvj5TzL44shu+0M0AvXRgTD7+4cy+XD/WviiwsT5w8XO9AGuBvn"
        "hM7L1AdNo8ZDa7vpo09r7EHKi+UObKPiiBFD521P6+DOiJvp4qwj5qifU+oJvLPVBLAwQUAAAACAAAACEAAquL1EUAAABAAAAADgAA"
        "AGFyY2hpdmUvZGF0YS83AUAAv/8mW44+cK2oPTQBlT4OKsi+qBKsPU724r4Uyvu+cjTXPlAORj1EVlY+EAWJvR53076AacI+yATpvv"
        "Dwp770/SQ+UEsDBBQAAAAIAAAAIQCZrEBtRQAAAEAAAAAOAAAAYXJjaGl2ZS9kYXRhLzgBQAC//8gdPr4AAwo+wvXrvrQiQD72Iqm+"
        "NBuOPnDFYr1afs++IFf0vajxqr1GJJ8+QBhjvjC9NT0k0WW+YOCNPC6k4D5QSwMEFAAAAAgAAAAhABtdez6VAAAAkAAAAA4AAABhcm"
        "NoaXZlL2RhdGEvOQGQAG//22J+Pk+d/T0Qywa/tO+sPrdHDj+eTRY+qeT1PjbYgT62uQo/0BqYvfu3UL6fu5k+OKwevrn9Xr0LPJS9"
        "1PhXviqv2j3Rm+u9H+C/vqd+Bz/Dwgy/mI+cvlRSBz+yaba+BTD+vr0yqz5H1g8/xMvTPhWHzL52/A+/1mYEv/J+mryg0Q0+u5dGvF"
        "IbID5ly4O+UEsDBBQAAAAIAAAAIQCt6V92cQAAAGwAAAAPAAAAYXJjaGl2ZS9kYXRhLzEwAWwAk/8y0aw69qoEPzO0QL71M92+CrcA"
        "P6CfxT4v6Qg/uYb1Pkj/zztIi54+6sitPfhUPT6h3u48lCqkPu3XLb7sXmS9DquiPm1qXj7A2+s+ZY8RviJO873NQcu+umKAvtgFCr"
        "/rvQE/uFzVvqiHR75QSwMEFAAAAAgAAAAhAOODaj0nAAAAJAAAAA8AAABhcmNoaXZlL2RhdGEvMTET3Wlu52x82471wlY7FV5me4/N"
        "D/YELK7Yl2ghuP/+nHu2V9i97ABQSwMEFAAAAAgAAAAhABiuIDsnAAAAJAAAAA8AAABhcmNoaXZlL2RhdGEvMTI7dfHbHkvO1XayyV"
        "17S33NbJkWMe2XWMdqxxugb3fjnfe+H5UWdgBQSwMEFAAAAAgAAAAhAI5VvEuVAAAAkAAAAA8AAABhcmNoaXZlL2RhdGEvMTMBkABv"
        "/zIyDL/GT+E+J4MJv08wwD6CpC6+QugQv7gspr34nqQ+882wvAUxx75z9Ma+HZHhPnKgBb9IS5e+pKMHv61IDr/Cegk/AV15vv85Pb"
        "qUS+K9ZbPyvs56Wr2gtPW+CK6svomU2T64VMG+hx5jPhvrLb7fWUw+a4jkvW6WtD6WOAE/TLkBP0yq3z6VlVy+6EazPlBLAwQUAAAA"
        "CAAAACEAST8tpHEAAABsAAAADwAAAGFyY2hpdmUvZGF0YS8xNAFsAJP/h2XOvsKHCr+E7wA/89GovVsF3j4nv6A+XFT0vRTjr706ns"
        "i9RK8Bv1xJ4j4ygai+oetePrM2Cz+isO++ec+uvhSE8T6GBEG95TAEv7s2Pj41uNA+nZHEvqDi1T66WQ8/WMALP8kzrD5m2x49UEsD"
        "BBQAAAAIAAAAIQA4BkIbKQAAACQAAAAPAAAAYXJjaGl2ZS9kYXRhLzE1ASQA2/8612c+MIdHvvU0tD3//pG+UXvTPh+QSL4LeKO+XN"
        "OovWKuBz5QSwMEFAAAAAgAAAAhADbNeFwpAAAAJAAAAA8AAABhcmNoaXZlL2RhdGEvMTYBJADb/6N/oD0uJKq+BqSzvuOm7b4DoHm+"
        "fF5gvfN42z5B25O+6a0bvFBLAwQUAAAACAAAACEA1inU4DUAAAAwAAAADwAAAGFyY2hpdmUvZGF0YS8xNwEwAM//nVS2vpw2q77a/8"
        "a+zOEyv3r04r5YRL69MkgOPhj5jD5F5gO/6Tswv1pgyL5XPMO+UEsDBBQAAAAIAAAAIQAO+41AEgAAABAAAAAPAAAAYXJjaGl2ZS9k"
        "YXRhLzE4q1M6sM8x8KBdkISaXem65D0AUEsDBBQAAAAIAAAAIQBtiWnbCgAAAAgAAAAPAAAAYXJjaGl2ZS9kYXRhLzE507vIsP9E/v"
        "N9AFBLAwQUAAAACAAAACEAfet/gQoAAAAIAAAADwAAAGFyY2hpdmUvZGF0YS8yMDs9Ucr+oIDEfgBQSwECFAMUAAAACAAAACEA46t2"
        "6jsDAADgBgAAEAAAAAAAAAAAAAAAgAEAAAAAYXJjaGl2ZS9kYXRhLnBrbFBLAQIUAxQAAAAIAAAAIQCFPeMZCAAAAAYAAAARAAAAAA"
        "AAAAAAAACAAWkDAABhcmNoaXZlL2J5dGVvcmRlclBLAQIUAxQAAAAIAAAAIQBfpcRRQQAAADwAAAAOAAAAAAAAAAAAAACAAaADAABh"
        "cmNoaXZlL2RhdGEvMFBLAQIUAxQAAAAIAAAAIQC2bEPxxQAAAMAAAAAOAAAAAAAAAAAAAACAAQ0EAABhcmNoaXZlL2RhdGEvMVBLAQ"
        "IUAxQAAAAIAAAAIQC+EYSyBQEAAAABAAAOAAAAAAAAAAAAAACAAf4EAABhcmNoaXZlL2RhdGEvMlBLAQIUAxQAAAAIAAAAIQCg6jWC"
        "RQAAAEAAAAAOAAAAAAAAAAAAAACAAS8GAABhcmNoaXZlL2RhdGEvM1BLAQIUAxQAAAAIAAAAIQCeUV0XRQAAAEAAAAAOAAAAAAAAAA"
        "AAAACAAaAGAABhcmNoaXZlL2RhdGEvNFBLAQIUAxQAAAAIAAAAIQAJmwcFBQEAAAABAAAOAAAAAAAAAAAAAACAAREHAABhcmNoaXZl"
        "L2RhdGEvNVBLAQIUAxQAAAAIAAAAIQB1x4IWBQEAAAABAAAOAAAAAAAAAAAAAACAAUIIAABhcmNoaXZlL2RhdGEvNlBLAQIUAxQAAA"
        "AIAAAAIQACq4vURQAAAEAAAAAOAAAAAAAAAAAAAACAAXMJAABhcmNoaXZlL2RhdGEvN1BLAQIUAxQAAAAIAAAAIQCZrEBtRQAAAEAA"
        "AAAOAAAAAAAAAAAAAACAAeQJAABhcmNoaXZlL2RhdGEvOFBLAQIUAxQAAAAIAAAAIQAbXXs+lQAAAJAAAAAOAAAAAAAAAAAAAACAAV"
        "UKAABhcmNoaXZlL2RhdGEvOVBLAQIUAxQAAAAIAAAAIQCt6V92cQAAAGwAAAAPAAAAAAAAAAAAAACAARYLAABhcmNoaXZlL2RhdGEv"
        "MTBQSwECFAMUAAAACAAAACEA44NqPScAAAAkAAAADwAAAAAAAAAAAAAAgAG0CwAAYXJjaGl2ZS9kYXRhLzExUEsBAhQDFAAAAAgAAA"
        "AhABiuIDsnAAAAJAAAAA8AAAAAAAAAAAAAAIABCAwAAGFyY2hpdmUvZGF0YS8xMlBLAQIUAxQAAAAIAAAAIQCOVbxLlQAAAJAAAAAP"
        "AAAAAAAAAAAAAACAAVwMAABhcmNoaXZlL2RhdGEvMTNQSwECFAMUAAAACAAAACEAST8tpHEAAABsAAAADwAAAAAAAAAAAAAAgAEeDQ"
        "AAYXJjaGl2ZS9kYXRhLzE0UEsBAhQDFAAAAAgAAAAhADgGQhspAAAAJAAAAA8AAAAAAAAAAAAAAIABvA0AAGFyY2hpdmUvZGF0YS8x"
        "NVBLAQIUAxQAAAAIAAAAIQA2zXhcKQAAACQAAAAPAAAAAAAAAAAAAACAARIOAABhcmNoaXZlL2RhdGEvMTZQSwECFAMUAAAACAAAAC"
        "EA1inU4DUAAAAwAAAADwAAAAAAAAAAAAAAgAFoDgAAYXJjaGl2ZS9kYXRhLzE3UEsBAhQDFAAAAAgAAAAhAA77jUASAAAAEAAAAA8A"
        "AAAAAAAAAAAAAIAByg4AAGFyY2hpdmUvZGF0YS8xOFBLAQIUAxQAAAAIAAAAIQBtiWnbCgAAAAgAAAAPAAAAAAAAAAAAAACAAQkPAA"
        "BhcmNoaXZlL2RhdGEvMTlQSwECFAMUAAAACAAAACEAfet/gQoAAAAIAAAADwAAAAAAAAAAAAAAgAFADwAAYXJjaGl2ZS9kYXRhLzIw"
        "UEsFBgAAAAAXABcAdAUAAHcPAAAAAA==");
}

/// MultiheadAttention(4, 2)
std::string attention_file() {
    return from_base64(
        "UEsDBBQAAAAIAAAAIQAL7tOhQwEAANoBAAAQAAAAYXJjaGl2ZS9kYXRhLnBrbFWRyW7CMBCGE0gLpGHpvu8bdEGUvkLViw9V04tvUU"
        "gsnCol/MmEnpB6AalvXSfpAU6Wxv9883n8U/K8KAyFR0E0Ssy32Bex8F8Cj0xoHRt6mzc0TQtGzjiOPp1vEQwloeRRFHuy66QUhInp"
        "xGKQBqHvkBglUexM+ibK7TavqM5EJd2hgFG0mK9h5NJHUTSxwnWV6WGVl9XpjVNUWI9QfWcas5gxR40ZTJ/D/JWZzRrBslHn1oLSIH"
        "ATNKSaJw1Z8J7QlBVmEVo5Z4Z1ps+wUTA2CVs2tnlTBaOUckj3/107S5g+dhWmRdjLMEams1/oHBSoQ8KRjWNeX0TlPidLoGecKpBB"
        "OMtBM5xnPhcF5JJwZeM6neKG11TY+RLk+i65uM3v1R5VVUNnirt8oxMRJ+qzcM/0hFcXRuNhikeZldNk0P0DUEsDBBQAAAAIAAAAIQ"
        "CFPeMZCAAAAAYAAAARAAAAYXJjaGl2ZS9ieXRlb3JkZXLLySwpyUkFAFBLAwQUAAAACAAAACEA74X/lMUAAADAAAAADgAAAGFyY2hp"
        "dmUvZGF0YS8wAcAAP/9GkdK+qt+HvukyD758SNE+QiMTPgsIB77qxMO+N53TPqFItb6ANbS9zptPu8AZEr8Em/A+uSf+vlU6rz4CEH"
        "c+5RNcvj2xor7bzO8+A2SAvtarCz/AlwY7hbcTPwZf2j6jBDW+9bfRvcGpyTxsasc+XUQ9PdJEiL6gUMq80PSMvaanDj9pjok+IqTW"
        "vobT1L7yCqe+vYOvPlkjRj1oLTq+EscZPvbJyT6umqs8YmB3Pv2Fnb0gpyA+Ub7ePo/Y771QSwMEFAAAAAgAAAAhAOPn6dgtAAAAMA"
        "AAAA4AAABhcmNoaXZlL2RhdGEvMWNgaNgfWxK4f9cLpf16u17se7Goe1+H3q69QGwLZNsBxeyAcvZANfYMDA32AFBLAwQUAAAACAAA"
        "ACEAKBK3lEUAAABAAAAADgAAAGFyY2hpdmUvZGF0YS8yAUAAv/9Q3JM9kKxcPcZB+T6gPt09LNuHvjApUL08hTI+qPV9PgA1dj2ETa"
        "q+nKsqvvBfEL0scQg+mtqJPo4Skr40IJA+UEsDBBQAAAAIAAAAIQDC83F+EgAAABAAAAAOAAAAYXJjaGl2ZS9kYXRhLzNjYGBgWL1q"
        "ld2qVVr2DAwN9gBQSwECFAMUAAAACAAAACEAC+7ToUMBAADaAQAAEAAAAAAAAAAAAAAAgAEAAAAAYXJjaGl2ZS9kYXRhLnBrbFBLAQ"
        "IUAxQAAAAIAAAAIQCFPeMZCAAAAAYAAAARAAAAAAAAAAAAAACAAXEBAABhcmNoaXZlL2J5dGVvcmRlclBLAQIUAxQAAAAIAAAAIQDv"
        "hf+UxQAAAMAAAAAOAAAAAAAAAAAAAACAAagBAABhcmNoaXZlL2RhdGEvMFBLAQIUAxQAAAAIAAAAIQDj5+nYLQAAADAAAAAOAAAAAA"
        "AAAAAAAACAAZkCAABhcmNoaXZlL2RhdGEvMVBLAQIUAxQAAAAIAAAAIQAoEreURQAAAEAAAAAOAAAAAAAAAAAAAACAAfICAABhcmNo"
        "aXZlL2RhdGEvMlBLAQIUAxQAAAAIAAAAIQDC83F+EgAAABAAAAAOAAAAAAAAAAAAAACAAWMDAABhcmNoaXZlL2RhdGEvM1BLBQYAAA"
        "AABgAGAG0BAAChAwAAAAA=");
}

/// Every type, views (transposed, with steps), a scalar, an empty tensor, a Parameter, a torch.Size, lists and dicts.
std::string views_file() {
    return from_base64(
        "UEsDBBQAAAAIAAAAIQCSgtXatAIAABEFAAAQAAAAYXJjaGl2ZS9kYXRhLnBrbHWU51vTUBTGuwCNuPfeWhxIWyjgFhDBoMjFUQfWNE"
        "1JJDR901O0uHC0gPtP9o5Qnnzwy+mT2/P+3vee3JulmGl6rmuZ5HjlqjbpFy3fKo44JmmIdDFEk7loJBIhxEzyfNPuztfIcata3rcK"
        "Ncct5skqVz0/v5DWEE8mcx28uco7jVkLCSXRRl3PoGm1qKFNAnvQnovzX7NSQ4feSdgwpUf0hB5vYqMe1RNNaKu2CLCJ0MmwOZfgzR"
        "XDJ2yxuY+dsNvsdlsqt07pMT3ewDY91sB2pdpB2MmwK9cu4piGa/jYrXRBpgmvPNuKtEdGSmEvB0YJ+3iUri4F2k84wHAw18YbrPkK"
        "1XFozV+K0jjMRXw+R0T+iMh/VI/r0SaOKcBxwgmGkzK/bbglnArlGONLrRynJTKDMxwZI5wVSL6npB5tIMhzjnCe4UIuxhsLJVwMwY"
        "bkpFPZFrBbAntxSQF7AmBKANMKmCH0MvTJl1HK9iIbIo54tYJrtXj9kteHATWoQcHjqMuiXFG8q4RrDNflfgue5+JGOCJfauFuSlwW"
        "t1S8oSDesMCNKNxtwijDHbnf2gDGwrA6rWcbl7B+3FXZ9CDbhCj3FOw+YZLhgYQ5A5gKwYZtw2/BmIQNYFrBHgawR6I8VrAnhBzDUz"
        "k4J5XFsxBt2vb89TP/XOIG8ULhZgLcS1HyCveKYDAUFC6ThhnCjZfXYUWZP9UDS9FKAW1WFFvRHMJrhjl5bPmtMebh/uf+yn8tsnwN"
        "862TLQ1SKCsDLzCoiAJlwC9ilYFW5ENtGQsMb+Q7rzqLFt6uTYE/aKjzCx1rYrGBdwzvZZfrVAkfZvAxGfZM45PyXAo8P4vyRXl+JX"
        "xjaHxAU45zDsthcQYrSrwaiL+L8kOJfxJ+MfyuWnImRapXLPwJYpbEtcnwL9jfWvc/UEsDBBQAAAAIAAAAIQCFPeMZCAAAAAYAAAAR"
        "AAAAYXJjaGl2ZS9ieXRlb3JkZXLLySwpyUkFAFBLAwQUAAAACAAAACEAeH1mPiIAAAAwAAAADgAAAGFyY2hpdmUvZGF0YS8wY2AAgQ"
        "Z7IOEAREDcAMQLgPgAED8AYgZHBgYBIFYAYgNHAFBLAwQUAAAACAAAACEAcNbnbwUAAAAIAAAADgAAAGFyY2hpdmUvZGF0YS8xY2eA"
        "AABQSwMEFAAAAAgAAAAhAAAAAAACAAAAAAAAAA4AAABhcmNoaXZlL2RhdGEvMgMAUEsDBBQAAAAIAAAAIQDOMVbgBgAAAAQAAAAOAA"
        "AAYXJjaGl2ZS9kYXRhLzNjsGE4CABQSwMEFAAAAAgAAAAhAJgtyu0GAAAABAAAAA4AAABhcmNoaXZlL2RhdGEvNGuwVzgAAFBLAwQU"
        "AAAACAAAACEA4ZkhDwcAAAAIAAAADgAAAGFyY2hpdmUvZGF0YS81Y2AAgR/2AFBLAwQUAAAACAAAACEAviPCWAQAAAACAAAADgAAAG"
        "FyY2hpdmUvZGF0YS82Y2QAAFBLAwQUAAAACAAAACEAAAAA/wMAAAABAAAADgAAAGFyY2hpdmUvZGF0YS83+w8AUEsDBBQAAAAIAAAA"
        "IQAAAAD/AwAAAAEAAAAOAAAAYXJjaGl2ZS9kYXRhLzj7DwBQSwMEFAAAAAgAAAAhAP/NiP4EAAAAAgAAAA4AAABhcmNoaXZlL2RhdG"
        "EvObvyDwBQSwMEFAAAAAgAAAAhAIaHhE4GAAAABAAAAA8AAABhcmNoaXZlL2RhdGEvMTArEGRkAABQSwMEFAAAAAgAAAAhAInR4acG"
        "AAAABAAAAA8AAABhcmNoaXZlL2RhdGEvMTFjYHBwAABQSwMEFAAAAAgAAAAhAMcGG2wGAAAABAAAAA8AAABhcmNoaXZlL2RhdGEvMT"
        "JjYGhwAABQSwMEFAAAAAgAAAAhAGUin/kGAAAABAAAAA8AAABhcmNoaXZlL2RhdGEvMTNjYFjgAABQSwECFAMUAAAACAAAACEAkoLV"
        "2rQCAAARBQAAEAAAAAAAAAAAAAAAgAEAAAAAYXJjaGl2ZS9kYXRhLnBrbFBLAQIUAxQAAAAIAAAAIQCFPeMZCAAAAAYAAAARAAAAAA"
        "AAAAAAAACAAeICAABhcmNoaXZlL2J5dGVvcmRlclBLAQIUAxQAAAAIAAAAIQB4fWY+IgAAADAAAAAOAAAAAAAAAAAAAACAARkDAABh"
        "cmNoaXZlL2RhdGEvMFBLAQIUAxQAAAAIAAAAIQBw1udvBQAAAAgAAAAOAAAAAAAAAAAAAACAAWcDAABhcmNoaXZlL2RhdGEvMVBLAQ"
        "IUAxQAAAAIAAAAIQAAAAAAAgAAAAAAAAAOAAAAAAAAAAAAAACAAZgDAABhcmNoaXZlL2RhdGEvMlBLAQIUAxQAAAAIAAAAIQDOMVbg"
        "BgAAAAQAAAAOAAAAAAAAAAAAAACAAcYDAABhcmNoaXZlL2RhdGEvM1BLAQIUAxQAAAAIAAAAIQCYLcrtBgAAAAQAAAAOAAAAAAAAAA"
        "AAAACAAfgDAABhcmNoaXZlL2RhdGEvNFBLAQIUAxQAAAAIAAAAIQDhmSEPBwAAAAgAAAAOAAAAAAAAAAAAAACAASoEAABhcmNoaXZl"
        "L2RhdGEvNVBLAQIUAxQAAAAIAAAAIQC+I8JYBAAAAAIAAAAOAAAAAAAAAAAAAACAAV0EAABhcmNoaXZlL2RhdGEvNlBLAQIUAxQAAA"
        "AIAAAAIQAAAAD/AwAAAAEAAAAOAAAAAAAAAAAAAACAAY0EAABhcmNoaXZlL2RhdGEvN1BLAQIUAxQAAAAIAAAAIQAAAAD/AwAAAAEA"
        "AAAOAAAAAAAAAAAAAACAAbwEAABhcmNoaXZlL2RhdGEvOFBLAQIUAxQAAAAIAAAAIQD/zYj+BAAAAAIAAAAOAAAAAAAAAAAAAACAAe"
        "sEAABhcmNoaXZlL2RhdGEvOVBLAQIUAxQAAAAIAAAAIQCGh4ROBgAAAAQAAAAPAAAAAAAAAAAAAACAARsFAABhcmNoaXZlL2RhdGEv"
        "MTBQSwECFAMUAAAACAAAACEAidHhpwYAAAAEAAAADwAAAAAAAAAAAAAAgAFOBQAAYXJjaGl2ZS9kYXRhLzExUEsBAhQDFAAAAAgAAA"
        "AhAMcGG2wGAAAABAAAAA8AAAAAAAAAAAAAAIABgQUAAGFyY2hpdmUvZGF0YS8xMlBLAQIUAxQAAAAIAAAAIQBlIp/5BgAAAAQAAAAP"
        "AAAAAAAAAAAAAACAAbQFAABhcmNoaXZlL2RhdGEvMTNQSwUGAAAAABAAEADJAwAA5wUAAAAA");
}

/// {"c": torch.zeros(2, dtype=torch.complex64)}, {"m": nn.Linear(1, 1)}, {"x": torch.zeros(1).expand(1000)}
std::string complex_file() {
    return from_base64(
        "UEsDBBQAAAAIAAAAIQBuk5F4lAAAAKkAAAAQAAAAYXJjaGl2ZS9kYXRhLnBrbCWMPQ6CMBSAS1HRqveAhRivoHHpYMSFrcFHo00q5b"
        "UP42LiwuCtRZm/nzd/ISsjxhhgBOQ83HLVkbFBKK8vnbG1It0E59VjK5CnaZkMchjM6qoxHhOxc/fW6ufBuorOIxM4+X83OC3j37/t"
        "cCY5YXKSTPIe5zLqcfEBcNZqIOOaII6+1l7XewMkUGQFLglXBa5D/gVQSwMEFAAAAAgAAAAhAIU94xkIAAAABgAAABEAAABhcmNoaX"
        "ZlL2J5dGVvcmRlcsvJLCnJSQUAUEsDBBQAAAAIAAAAIQBVS7vsBQAAABAAAAAOAAAAYXJjaGl2ZS9kYXRhLzBjYEAFAFBLAQIUAxQA"
        "AAAIAAAAIQBuk5F4lAAAAKkAAAAQAAAAAAAAAAAAAACAAQAAAABhcmNoaXZlL2RhdGEucGtsUEsBAhQDFAAAAAgAAAAhAIU94xkIAA"
        "AABgAAABEAAAAAAAAAAAAAAIABwgAAAGFyY2hpdmUvYnl0ZW9yZGVyUEsBAhQDFAAAAAgAAAAhAFVLu+wFAAAAEAAAAA4AAAAAAAAA"
        "AAAAAIAB+QAAAGFyY2hpdmUvZGF0YS8wUEsFBgAAAAADAAMAuQAAACoBAAAAAA==");
}
std::string object_file() {
    return from_base64(
        "UEsDBBQAAAAIAAAAIQBXoWj+DgIAAKoDAAAQAAAAYXJjaGl2ZS9kYXRhLnBrbHVTW1PUMBhtAblkEQQEFRDvWrxUwPsVL+hLHR3rS1"
        "6cTLZNtxm6zX5J6o4PndEHBP61abrMsi6+NJNzzndOv+9rf42U4GDXcZw2uJEWMkr9PPfbIi4ypvyM54xK9Kk+YGT9N4yWMObhSVOh"
        "JeU5z1tw6gA3zJ10qKRtpplUMF7ChIfHDdplvJVqmOyZk0LzTCEiWbPgWdyvQTD1H4lmuRKS/NhCgDwPTxhTZZS0xaBRl6CPmaD6Ww"
        "0imLYNbcBpPGrOqFPATOBqmP0aOIEbuH/gTH3MHUaRyDIWaS5yhb7ImEkW7/BII5hfD2FBw9kQFg/S6rK0D+dCOI/HjGWTUwUX0qnU"
        "vE/aSOu8TVhObc6KzdmD1epx8dBWr2m4FMLl2urKPlwN4Vphp0iaRZJUI7tewg28UiG5yEnHQFyZ1vWRgCim4WZESDUVzXNCkEEQ3P"
        "oO3h4Y29t4wfrRaLdLpRmtZCQVYlfBHRt7F88O8DV3z3I+Xqo4rkhSZNmgBu5/xjMVmwh5rHDDFm7i5SGKdLlOSWXQUrBlZQ/w6rCM"
        "Zl36U5GImh3E8NAKH+H548J+D48t/QSvnUgPRD610md4rpIqTTUjsVlqz+i5ZV/gxX/YftRLq3hVd2a+rPhk2Wsr2653NiQT6ijwjd"
        "W9rbfd+7PgXQnv7V9jFpkwqgtpwJ3AxdMGE4Xugx8Ct2gq/y9QSwMEFAAAAAgAAAAhAIU94xkIAAAABgAAABEAAABhcmNoaXZlL2J5"
        "dGVvcmRlcsvJLCnJSQUAUEsDBBQAAAAIAAAAIQBqR8BuBgAAAAQAAAAOAAAAYXJjaGl2ZS9kYXRhLzC7YjhvHwBQSwMEFAAAAAgAAA"
        "AhAF8iaeMGAAAABAAAAA4AAABhcmNoaXZlL2RhdGEvMfuzd94+AFBLAQIUAxQAAAAIAAAAIQBXoWj+DgIAAKoDAAAQAAAAAAAAAAAA"
        "AACAAQAAAABhcmNoaXZlL2RhdGEucGtsUEsBAhQDFAAAAAgAAAAhAIU94xkIAAAABgAAABEAAAAAAAAAAAAAAIABPAIAAGFyY2hpdm"
        "UvYnl0ZW9yZGVyUEsBAhQDFAAAAAgAAAAhAGpHwG4GAAAABAAAAA4AAAAAAAAAAAAAAIABcwIAAGFyY2hpdmUvZGF0YS8wUEsBAhQD"
        "FAAAAAgAAAAhAF8iaeMGAAAABAAAAA4AAAAAAAAAAAAAAIABpQIAAGFyY2hpdmUvZGF0YS8xUEsFBgAAAAAEAAQA9QAAANcCAAAAAA"
        "==");
}
std::string expanded_file() {
    return from_base64(
        "UEsDBBQAAAAIAAAAIQDPDc43lAAAAKMAAAAQAAAAYXJjaGl2ZS9kYXRhLnBrbCWMsQrCMBRFU6tWo/5HXYr4DeJSRKxLt1BfgwZC40"
        "1exUVw6eCf+hkWOx24nHveoxdEGQkhnoiInadbplo2Nkjl9aU1tlasm+C8emwlRmlaJr0cerO6asTDRe6tq/g8jBLjf3CDSRn3pHuL"
        "aR4xklMuDt+4wywXHeYfImetJjauCfLoa+11vTPEEnJdYMFYFliF7AdQSwMEFAAAAAgAAAAhAIU94xkIAAAABgAAABEAAABhcmNoaX"
        "ZlL2J5dGVvcmRlcsvJLCnJSQUAUEsDBBQAAAAIAAAAIQAc30QhBgAAAAQAAAAOAAAAYXJjaGl2ZS9kYXRhLzBjYGBgAABQSwECFAMU"
        "AAAACAAAACEAzw3ON5QAAACjAAAAEAAAAAAAAAAAAAAAgAEAAAAAYXJjaGl2ZS9kYXRhLnBrbFBLAQIUAxQAAAAIAAAAIQCFPeMZCA"
        "AAAAYAAAARAAAAAAAAAAAAAACAAcIAAABhcmNoaXZlL2J5dGVvcmRlclBLAQIUAxQAAAAIAAAAIQAc30QhBgAAAAQAAAAOAAAAAAAA"
        "AAAAAACAAfkAAABhcmNoaXZlL2RhdGEvMFBLBQYAAAAAAwADALkAAAArAQAAAAA=");
}

tg::tensor<float> spread(tg::shape dims) { // torch.linspace(-1, 1, n)
    std::vector<float> values(static_cast<std::size_t>(dims.elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(-1 + 2 * static_cast<double>(i) / static_cast<double>(values.size() - 1));
    return tg::tensor<float>(values, dims);
}

bool close(const tg::tensor<float>& a, const std::vector<float>& b) {
    const auto values = a.to_vector();
    if (values.size() != b.size()) return false;
    for (std::size_t i = 0; i < b.size(); ++i)
        if (!(std::fabs(values[i] - b[i]) <= 1e-5f)) return false; // a few operations of float
    return true;
}

/// [batch, channels, height, width] to our order.
tg::tensor<float> channels_last(const tg::tensor<float>& x) { return tg::eval(transpose(x, {0, 2, 3, 1})); }

constexpr auto mlp = [](auto scope, auto x) {
    return tg::dense(scope / "score", tanh(tg::dense(scope / "hidden", x, {.units = 4})), {.units = 2});
};
constexpr auto cnn = [](auto s, auto x) {
    auto h = tg::eval(
        relu(tg::batch_normalization(s / "norm", tg::conv2d(s / "first", x, {.filters = 4}), {.epsilon = 1e-5})));
    h = tg::depthwise_conv2d(s / "depthwise", h,
                             {.padding = tg::padding::same(), .depth_multiplier = 2, .use_bias = false});
    h = tg::conv2d_transpose(s / "up", h, {.filters = 3, .kernel_size = 2, .stride = 2});
    h = tg::group_normalization(s / "groups", h, {.groups = 1, .epsilon = 1e-5});
    return tg::dense(s / "score", flatten(h), {.units = 2});
};
constexpr auto rnn = [](auto s, auto x) {
    auto h = tg::embedding(s / "table", x, {.input_dim = 5, .output_dim = 3});
    h = tg::lstm(s / "first", h, {.units = 4, .return_sequences = true});
    h = tg::lstm(s / "second", h, {.units = 4, .return_sequences = true});
    h = tg::bidirectional(s / "both", h, tg::gru_layer_options{.units = 3, .return_sequences = true});
    return tg::simple_rnn(s / "last", h, {.units = 2});
};
constexpr auto attention = [](auto s, auto x) {
    return tg::multi_head_attention(s / "attention", x, x, {.num_heads = 2, .key_dim = 2});
};

/// What loading the file into a model of two layers says.
template <class Error>
std::string objection_to(const std::string& file, const tg::io::foreign_options& options = {}) {
    const support::temporary_folder folder;
    auto net = tg::instance(mlp, tg::spec<float, tg::dyn, 3>{});
    const auto before = net.variables()["hidden/kernel"].template value<float>().to_vector();
    const std::string text = message_of<Error>([&] { tg::io::load_pytorch(net, folder.write("x.pt", file), options); });
    CHECK(net.variables()["hidden/kernel"].template value<float>().to_vector() == before);
    return text;
}
std::string objection_to_reading(const std::string& file) {
    const support::temporary_folder folder;
    return message_of<tg::data_error>([&] { tg::io::read_pytorch(folder.write("x.pt", file)); });
}

} // namespace

TEST_CASE("a state_dict as torch.save writes it") {
    const support::temporary_folder folder;
    const auto path = folder.write("mlp.pt", mlp_file());
    const auto tensors = tg::io::read_pytorch(path);
    REQUIRE(tensors.size() == 4);
    CHECK(tensors[0].name == "0.weight");
    CHECK(tensors[0].array.shape == std::vector<std::int64_t>{4, 3});
    CHECK(tensors[3].name == "2.bias");
    auto net = tg::instance(mlp, tg::spec<float, tg::dyn, 3>{});
    const auto report = tg::io::load_pytorch(net, path);
    CHECK(report.text() ==
          "4 matched, 0 missing, 0 unexpected, 0 mismatched\nhidden/kernel <- 0.weight\nhidden/bias <- 0.bias\n"
          "score/kernel <- 2.weight\nscore/bias <- 2.bias\n");
    CHECK(close(net(spread({2, 3})), {-0.689849138f, -0.497368217f, -0.284585416f, -0.489899218f}));
}

TEST_CASE("convolutions of all kinds, normalizations, and a flattened image") {
    const support::temporary_folder folder;
    const auto path = folder.write("cnn.pt", cnn_file());
    const auto file = tg::io::read_pytorch_file(path);
    CHECK(file.settings == std::map<std::string, std::string>{{"epoch", "7"}, {"lr", "0.500000"}, {"note", "text"}});
    auto net = tg::instance(cnn, tg::spec<float, tg::dyn, 6, 5, 2>{});
    const auto report = tg::io::load_pytorch(net, path, {.prefix = "model.", .flattened = {{"fc", {3, 8, 6}}}});
    CHECK(report.matched.size() == 13);
    CHECK(close(net(channels_last(spread({1, 2, 6, 5}))), {0.994998455f, -0.136056095f}));
    // Without the order of the image the weights load, and the result is another one.
    tg::io::load_pytorch(net, path, {.prefix = "model."});
    CHECK(!close(net(channels_last(spread({1, 2, 6, 5}))), {0.994998455f, -0.136056095f}));
}

TEST_CASE("recurrent layers: several, in both directions, of three kinds, behind an embedding") {
    const support::temporary_folder folder;
    auto net = tg::instance(rnn, tg::spec<std::int32_t, tg::dyn, 4>{});
    const auto report = tg::io::load_pytorch(net, folder.write("rnn.pt", rnn_file()));
    CHECK(report.matched.size() == 16);
    CHECK(contains(report.text(), "second/bias <- l.bias_ih_l1 and l.bias_hh_l1\n"));
    const tg::tensor<float> y = net(tg::tensor<std::int32_t>{{0, 1, 4, 2}, {3, 3, 2, 0}});
    CHECK(close(y, {-0.0489885248f, -0.820677102f, -0.0449591987f, -0.815474033f}));
}

TEST_CASE("attention's one matrix becomes three") {
    const support::temporary_folder folder;
    auto net = tg::instance(attention, tg::spec<float, tg::dyn, 3, 4>{});
    tg::io::load_pytorch(net, folder.write("mha.pt", attention_file()));
    CHECK(close(net(spread({2, 3, 4})),
                {0.34580192f,  0.487930536f, 0.352072299f, 1.34245729f,  0.343087554f, 0.486484945f,
                 0.353131413f, 1.34306455f,  0.340369314f, 0.485037476f, 0.354192436f, 1.34367228f,
                 0.785116017f, 0.742023706f, 0.240308642f, 1.18687582f,  0.78239578f,  0.740575552f,
                 0.241371453f, 1.18748307f,  0.77967751f,  0.73912847f,  0.242434025f, 1.18808937f}));
}

TEST_CASE("views, types, and dicts in each other") {
    const support::temporary_folder folder;
    std::map<std::string, host_array> all;
    for (auto& [name, array] : tg::io::read_pytorch(folder.write("views.pt", views_file()))) all[name] = array;
    REQUIRE(all.size() == 15);
    CHECK(all["t"].shape == std::vector<std::int64_t>{4, 3});
    const auto t = all["t"].values<float>();
    CHECK(std::vector<float>(t.begin(), t.end()) == std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
    const auto part = all["part"].values<float>();
    CHECK(std::vector<float>(part.begin(), part.end()) == std::vector<float>{2, 4, 6});
    CHECK(all["scalar"].shape.empty());
    CHECK(all["scalar"].values<std::int64_t>()[0] == 7);
    CHECK(all["empty"].shape == std::vector<std::int64_t>{0, 3});
    for (const char* const name : {"half", "bf"}) {
        host_array a = all[name];
        CHECK(size_of(a.type) == 2);
        REQUIRE(tg::io::detail::convert_floats(a, tg::dtype::f64));
        CHECK(a.values<double>()[0] == 1);
        CHECK(a.values<double>()[1] == -2.5);
    }
    CHECK(all["f64"].values<double>()[0] == 1.5);
    CHECK(all["bool"].values<bool>()[0]);
    CHECK(!all["bool"].values<bool>()[1]);
    CHECK(all["u8"].values<std::uint8_t>()[0] == 255);
    CHECK(all["i8"].values<std::int8_t>()[0] == -1);
    CHECK(all["i16"].values<std::int16_t>()[0] == -300);
    CHECK(all["i32"].values<std::int32_t>()[0] == 70000);
    CHECK(all["param"].values<float>()[0] == 3);
    CHECK(all["list.0"].values<float>()[0] == 4);
    CHECK(all["list.1.k"].values<float>()[0] == 5);
}

TEST_CASE("layers by name, by a table, in part") {
    const support::temporary_folder folder;
    const auto path = folder.write("mlp.pt", mlp_file());
    // Both layers take [4, 4]: only names say which is which.
    constexpr auto named = [](auto scope, auto x) {
        return tg::dense(scope / "2", tg::dense(scope / "0", x, {.units = 4}), {.units = 2});
    };
    auto net = tg::instance(named, tg::spec<float, tg::dyn, 3>{});
    CHECK(contains(tg::io::load_pytorch(net, path).text(), "2/kernel <- 2.weight\n"));
    auto other = tg::instance(mlp, tg::spec<float, tg::dyn, 3>{});
    const auto report = tg::io::load_pytorch(other, path, {.only = "score", .layers = {{"2", "score"}}});
    CHECK(report.text() ==
          "2 matched, 0 missing, 0 unexpected, 0 mismatched\nscore/kernel <- 2.weight\nscore/bias <- 2.bias\n");
    // A table that is wrong is believed, and the shapes reported.
    const auto wrong = tg::io::load_pytorch(other, path, {.layers = {{"2", "hidden"}}, .strict = false});
    CHECK(wrong.mismatched.size() == 4);
    CHECK(contains(wrong.text(),
                   "mismatched: hidden/kernel from 2.weight: [4,2] in the file (in our order), [3, 4] in the model\n"));
    CHECK(contains(
        objection_to<tg::argument_error>(mlp_file(), {.layers = {{"1", "score"}}}),
        "x.pt': layers: the file has no '1', or the model no 'score', or they are taken; the file has '0', '2'"));
    CHECK(contains(objection_to<tg::argument_error>(mlp_file(), {.prefix = "net."}),
                   "no tensor's name begins with 'net.'"));
    CHECK(contains(objection_to<tg::argument_error>(mlp_file(), {.only = "none"}), "the model has no variable 'none'"));
    CHECK(contains(objection_to<tg::argument_error>(mlp_file(), {.flattened = {{"x", {1}}}}),
                   "flattened: there is no layer 'x'"));
}

TEST_CASE("what does not fit is listed, and nothing of the model changes") {
    const std::string text = objection_to<tg::shape_error>(cnn_file(), {.prefix = "model."});
    CHECK(contains(text, "x.pt': does not fit the model: no tensor for score/kernel, score/bias; nothing in the model "
                         "for model.conv1.weight"));
    CHECK(contains(
        text,
        "; other shapes: hidden/kernel from model.fc.weight: [144,2] in the file (in our order), [3, 4] in the model"));
    CHECK(!contains(text, "num_batches_tracked"));
    // A GRU of the other form.
    constexpr auto reset_before = [](auto s, auto x) {
        return tg::gru(s / "g", x, {.units = 3, .reset_after = false});
    };
    const support::temporary_folder folder;
    auto net = tg::instance(reset_before, tg::spec<float, tg::dyn, 2, 4>{});
    const auto report =
        tg::io::load_pytorch(net, folder.write("rnn.pt", rnn_file()), {.layers = {{"g", "g"}}, .strict = false});
    CHECK(contains(report.text(),
                   "g/bias from g.bias_ih_l0 and g.bias_hh_l0: PyTorch's GRU is one with reset_after = true"));
}

TEST_CASE("half and double weights become the model's type") {
    const support::temporary_folder folder;
    auto single = tg::instance(mlp, tg::spec<float, tg::dyn, 3>{});
    auto twice = tg::instance(mlp, tg::spec<double, tg::dyn, 3>{});
    tg::io::load_pytorch(single, folder.write("mlp.pt", mlp_file()));
    tg::io::load_pytorch(twice, folder.path() / "mlp.pt");
    const auto a = single.variables()["hidden/kernel"].template value<float>().to_vector();
    const auto b = twice.variables()["hidden/kernel"].template value<double>().to_vector();
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(static_cast<double>(a[i]) == b[i]);
}

TEST_CASE("what is not read, and what to do about it") {
    CHECK(contains(objection_to_reading(complex_file()), "it names 'torch.ComplexFloatStorage', which is not read"));
    CHECK(contains(objection_to_reading(object_file()),
                   "x.pt', byte 13 of the pickle: it names 'torch.nn.modules.linear.Linear', which is not read: "
                   "tensors, numbers, texts and "
                   "plain containers are"));
    CHECK(contains(objection_to_reading(expanded_file()),
                   "tensor 'x': shows the 1 elements of its storage 1000 times in all; save x.contiguous()"));
    using namespace std::string_literals;
    CHECK(contains(
        objection_to_reading("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80"s),
        "the format that torch.save had before 1.6; in Python: torch.save(torch.load(path, weights_only=True), path)"));
    CHECK(contains(objection_to_reading("\x80\x04N."), "no file of torch.save, a pickle of something else"));
    CHECK(contains(objection_to_reading("GGUF...."), "no file of torch.save, which begins as a zip archive"));
    CHECK(contains(objection_to_reading("x"), "no file of torch.save"));
    const support::temporary_folder folder;
    {
        tg::io::zip_writer writer(folder.path() / "jit.pt");
        writer.add("net/data.pkl", "x");
        writer.add("net/constants.pkl", "x");
        writer.commit();
        tg::io::zip_writer other(folder.path() / "other.pt");
        other.add("a.npy", "x");
        other.commit();
    }
    CHECK(contains(message_of<tg::data_error>([&] { tg::io::read_pytorch(folder.path() / "jit.pt"); }),
                   "a program of torch.jit.save"));
    CHECK(contains(message_of<tg::data_error>([&] { tg::io::read_pytorch(folder.path() / "other.pt"); }),
                   "there is no data.pkl"));
}

} // namespace pytorch_test
