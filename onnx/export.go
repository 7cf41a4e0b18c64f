package onnx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/noether-ml/noether/internal/filesys"
)

// How to export a network from other frameworks, at the end of an error.
const (
	exportPyTorch = `export the network from Python:
  model.eval()
  torch.onnx.export(model, torch.zeros(1, 3, 224, 224), "model.onnx", input_names=["input"], output_names=["scores"],
                    dynamic_axes={"input": {0: "batch"}, "scores": {0: "batch"}}, dynamo=False)  # before 2.5: without dynamo`
	exportKeras = `export the network from Python:
  model = keras.models.load_model(%q)
  spec = [tf.TensorSpec((None, 224, 224, 3), tf.float32, name="input")]
  tf2onnx.convert.from_keras(model, input_signature=spec, output_path="model.onnx")`
	exportTensorFlow = `export the network:
  python -m tf2onnx.convert %s %s --output model.onnx`
	exportJAX = `export the network from Python (with jax2onnx, here a Flax module):
  import onnx
  from jax2onnx import to_onnx
  onnx.save_model(to_onnx(model, [("B", 224, 224, 3)]), "model.onnx")`
)

// Foreign returns an error, to follow the file's name, that says how to export from the framework
// that wrote it, nil for an unknown one.
func Foreign(path string) error {
	head := make([]byte, 4096) // the magic number and, of a zip archive, the first names of files
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if _, err := os.Stat(filepath.Join(path, "saved_model.pb")); err == nil {
			return fmt.Errorf("is a TensorFlow SavedModel, not an ONNX file; "+exportTensorFlow, "--saved-model", path)
		}
		return nil
	}
	f, err := filesys.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	n, _ := io.ReadFull(f, head)
	head = head[:n]
	extension := strings.ToLower(filepath.Ext(path))
	has := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case has("PK\x03\x04") && (bytes.Contains(head, []byte("/data.pkl")) || bytes.Contains(head, []byte("/byteorder"))),
		has("\x80\x02") || has("\x80\x04"), extension == ".pt", extension == ".pth", extension == ".ckpt":
		return errors.New("is a PyTorch file, not an ONNX model; " + exportPyTorch)
	case len(head) > 8 && head[8] == '{' && extension == ".safetensors":
		return errors.New("holds weights without a network (safetensors), not an ONNX model; load them in PyTorch and " + exportPyTorch)
	case has("\x89HDF"), has("PK\x03\x04") && extension == ".keras":
		return fmt.Errorf("is a Keras file, not an ONNX model; "+exportKeras, path)
	case len(head) > 8 && string(head[4:8]) == "TFL3":
		return fmt.Errorf("is a TensorFlow Lite file, not an ONNX model; "+exportTensorFlow, "--tflite", path)
	case extension == ".msgpack", extension == ".orbax":
		return errors.New("is a JAX file, not an ONNX model; " + exportJAX)
	}
	return nil
}

// notONNX returns Foreign's error, else err, with instructions for PyTorch unless the name ends in
// .onnx.
func notONNX(path string, err error) error {
	if foreign := Foreign(path); foreign != nil {
		return foreign
	}
	if strings.EqualFold(filepath.Ext(path), ".onnx") {
		return err
	}
	return fmt.Errorf("%w; from PyTorch, %s", err, exportPyTorch)
}
