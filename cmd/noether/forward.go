package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// A forwardRequest asks for tensors of a model with one input. The Python package compares them
// with those of the module that the model was exported from.
type forwardRequest struct {
	Model   string
	Inputs  []string // npy files of batches
	Tensors []string // float32
	Out     string   // folder: I-J.npy is tensor J for input I
}

func forwardCommand(e *engineFlags) *cobra.Command {
	return &cobra.Command{
		Use:    "forward REQUEST",
		Short:  "Compute tensors of a model, as a JSON file asks",
		Args:   usageArgs(cobra.ExactArgs(1)),
		Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			var r forwardRequest
			if err := json.Unmarshal(text, &r); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			o, err := e.openRuntime()
			if err != nil {
				return err
			}
			return r.run(c.Context(), o.Runtime, o.Threads)
		},
	}
}

func (r forwardRequest) run(ctx context.Context, rt *ort.Runtime, threads int) error {
	m, err := onnx.Read(r.Model)
	if err != nil {
		return err
	}
	if m, err = rewrite.WithOutputs(m, r.Tensors); err != nil {
		return err
	}
	if n := len(m.Inputs()); n != 1 {
		return fmt.Errorf("%s has %d inputs that these tensors depend on, not one", r.Model, n)
	}
	session, err := rt.NewSession(m, ort.Options{Threads: threads})
	if err != nil {
		return err
	}
	defer session.Close()
	for i, path := range r.Inputs {
		if err := r.batch(ctx, rt, session, i, path, m.Inputs()[0].Type); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// batch writes the tensors for one input.
func (r forwardRequest) batch(ctx context.Context, rt *ort.Runtime, session *ort.Session, i int, path string, t onnx.Type) error {
	in, err := readInput(ctx, rt, path, t)
	if err != nil {
		return err
	}
	defer in.Close()
	out := make([]*ort.Value, len(r.Tensors))
	if err := session.Run(ctx, []*ort.Value{in}, out); err != nil {
		return err
	}
	for j, v := range out {
		if v.Type() != onnx.Float {
			return fmt.Errorf("tensor %q is %v, not float32", r.Tensors[j], v.Type())
		}
		if err := saveArray(filepath.Join(r.Out, fmt.Sprintf("%d-%d.npy", i, j)), v.Tensor()); err != nil {
			return err
		}
		if err := v.Close(); err != nil {
			return err
		}
	}
	return nil
}

// readInput reads a batch as the type of the model's input.
func readInput(ctx context.Context, rt *ort.Runtime, path string, t onnx.Type) (*ort.Value, error) {
	f, err := dataset.OpenArrayFile(ctx, path, "")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	shape := f.Shape()
	index := make([]int, shape[0])
	for i := range index {
		index[i] = i
	}
	values := make([]float64, tensor.Size(shape))
	if err := f.Rows(index, values); err != nil {
		return nil, err
	}
	switch t {
	case onnx.Float:
		return wrapAs[float32](rt, values, shape)
	case onnx.Double:
		return wrapAs[float64](rt, values, shape)
	case onnx.Int64:
		return wrapAs[int64](rt, values, shape)
	case onnx.Uint8:
		return wrapAs[uint8](rt, values, shape)
	}
	return nil, fmt.Errorf("the input is %v: float32, float64, int64 and uint8 are supported", t)
}

func wrapAs[T float32 | float64 | int64 | uint8](rt *ort.Runtime, values []float64, shape []int) (*ort.Value, error) {
	data := make([]T, len(values))
	for i, v := range values {
		data[i] = T(v)
	}
	return ort.Wrap(rt, data, shape...)
}

func saveArray(path string, t tensor.Tensor) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := dataset.WriteNPY(f, t); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
