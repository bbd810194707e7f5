"""benchmarks/product_limits.py without any peer: which products it reads out of the calls of a step, and what it adds up."""

import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "benchmarks"), str(HERE.parents[1] / "benchmarks" / "compare")]

import operations  # noqa: E402
import product_limits as limits  # noqa: E402


def of(operation, shape, flop=0.0, predicts=False):
    return limits.products_of(operation, shape, flop, predicts)


class Products(unittest.TestCase):
    def test_layouts_follow_from_extents(self):
        self.assertEqual(of("matmul_bias, relu", "f32[1024,784] f32[784,512] f32[512] -> f32[1024,512]"), [(1, (1, 1024, 512, 784), "nn")])
        self.assertEqual(of("matmul", "f32[32,10] f32[512,10] -> f32[32,512]"), [(1, (1, 32, 512, 10), "nt")])
        self.assertEqual(of("matmul", "f32[2048,256] f32[2048,1024] -> f32[256,1024]"), [(1, (1, 256, 1024, 2048), "tn")])

    def test_one_matrix_for_a_batch_joins_its_rows(self):
        self.assertEqual(of("matmul", "f32[32,64,1024] f32[512,1024] -> f32[32,64,512]"), [(1, (1, 2048, 512, 1024), "nt")])
        self.assertEqual(of("matmul", "f32[3,5,7] f32[3,7,11] -> f32[3,5,11]"), [(1, (3, 5, 11, 7), "nn")])

    def test_predictions_keep_packed_weights(self):
        self.assertEqual(of("matmul", "f32[32,784] f32[784,512] -> f32[32,512]", predicts=True)[0][2], "np")
        self.assertEqual(of("matmul", "f32[3,5,7] f32[3,7,11] -> f32[3,5,11]", predicts=True)[0][2], "nn")

    def test_a_recurrence_has_a_product_for_each_step(self):
        flop = 2 * 64 * 32 * 256 * 1024
        self.assertEqual(of("lstm_states", "f32[32,64,1024] f32[256,1024] -> f32[6,32,64,256]", flop), [(64, (1, 32, 1024, 256), "np")])
        self.assertEqual(of("lstm", "f32[32,64,1024] f32[256,1024] -> f32[32,1,256]", flop)[0][0], 64)
        back = "f32[32,1,256] f32[6,32,64,256] f32[32,1,256] f32[256,1024] -> f32[32,64,1024]"
        self.assertEqual(of("lstm_gradient", back, flop), [(64, (1, 32, 256, 1024), "np")])

    def test_attention_has_two_products_and_its_gradient_five(self):
        q, flop = "f32[2,128,4,64]", 2 * 2 * 4 * 128 * 128 * 64
        forward = of("attention", f"{q} {q} {q} f32[1,1,1,1] -> f32[65536]", 2 * flop)
        self.assertEqual(forward, [(1, (8, 128, 128, 64), "nt"), (1, (8, 128, 64, 128), "nn")])
        hidden = of("attention_gradient", f"f32[65536] {q} {q} {q} f32[1,1,1,1] -> f32[65536]", 5 * flop / 2)
        self.assertEqual((len(hidden), {times for times, *_ in hidden}), (5, {0.5}))

    def test_other_calls_have_none(self):
        for operation, shape in (("add, gelu", "f32[32,8] f32[8] -> f32[32,8]"), ("gather", "f32[9,4] i32[2] -> f32[2,4]"),
                                 ("sparse_softmax_cross_entropy_gradient", "f32[32] f32[32,10] i32[32] -> f32[32,10]"),
                                 ("convolution_filter_gradient", "f32[8,56,56,64] f32[8,56,56,64] -> f32[3,3,64,64]")):
            self.assertEqual(of(operation, shape), [], operation)

    def test_rows_of_products_are_read_back(self):
        for sizes, layout in (((1, 32, 512, 784), "np"), ((8, 1, 3, 5), "tn")):
            self.assertEqual(operations.product_of(limits.row_of(sizes, layout).split("/")[0]), (sizes, layout))
            self.assertIn((sizes, layout), limits.variants(sizes, layout))
        self.assertIsNone(operations.product_of("matmul"))


class Sums(unittest.TestCase):
    def test_the_fastest_form_of_each_product_counts(self):
        a, b = limits.row_of((1, 2, 3, 4), "nn"), limits.row_of((1, 3, 4, 2), "tn")
        calls = [{"operation": "matmul", "shape": "", "seconds": 5.0, "products": [[1, a], [3, b]]}, {"operation": "add", "shape": "", "seconds": 2.0}]
        stored = {"rows": {"mlp/training/2": {"TapeGraph": {"median": 8.0, "calls": calls}, "PyTorch": {"median": 12.0}}},
                  "products": {a: {"TapeGraph nn": 2.0, "PyTorch nt": 1.0}, b: {"TapeGraph tn": 1.0, "PyTorch tn, turned": 3.0}}}
        self.assertEqual(limits.sums(stored, "mlp/training/2"), (5.0, 4.0, 5.0, 2.0))
        self.assertIn("| mlp/training/2 | 12 s, PyTorch | 8 s | 1.50 | 5 s | 2 s | 5 s | 4 s | 3.00 |", limits.text(stored))


if __name__ == "__main__":
    unittest.main()
