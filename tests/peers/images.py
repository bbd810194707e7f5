"""Images resized by us and by Pillow: no byte differs by more than one, since Pillow rounds between columns and rows, too. (There it also
cuts off what lies outside [0, 255], so the images here leave room for the cubic's overshoot.)

Usage: images.py PROGRAM; ends with 77 where a library is missing.
"""
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    from PIL import Image
except ImportError as missing:
    print(f"not here: {missing}")
    sys.exit(77)


def main(program):
    random = numpy.random.default_rng(1)
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "image.png"
        for height, width in ((37, 53), (120, 91), (1, 7)):
            image = Image.fromarray(random.integers(64, 192, (height, width, 3), dtype=numpy.uint8))
            image.save(path)
            for to_height, to_width in ((16, 16), (64, 80), (37, 20), (1, 1)):
                for name, method in (("bilinear", Image.BILINEAR), ("bicubic", Image.BICUBIC), ("area", Image.BOX)):
                    if name == "area" and (height % to_height or width % to_width):
                        continue  # Pillow's box takes whole pixels
                    done = subprocess.run([program, path, name, str(to_height), str(to_width)], check=True, capture_output=True)
                    ours = numpy.frombuffer(done.stdout, numpy.uint8).reshape(to_height, to_width, 3).astype(int)
                    theirs = numpy.asarray(image.resize((to_width, to_height), method), int)
                    worst = numpy.abs(ours - theirs).max()
                    assert worst <= 1, (name, height, width, to_height, to_width, worst)
    print("images agree")


if __name__ == "__main__":
    main(sys.argv[1])
