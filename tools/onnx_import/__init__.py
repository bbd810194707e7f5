"""The parts of tools/onnx_to_model.py."""
