package model_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/model/output"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A constant is a tensor that a graph returns for every image, plus the mean of the image.
type constant struct {
	name      string
	shape     []int // of one image
	values    []float32
	typ       onnx.Type // 0: float
	unbatched bool      // without a batch axis
	// undeclared declares the second size of the shape as unknown; it needs unbatched.
	undeclared bool
	op         string // an operator after the values, such as Softmax, over an axis; 0: 1
	axis       int
}

// transposed returns the transpose of a matrix.
func transposed(m []float32, rows, columns int) []float32 {
	out := make([]float32, len(m))
	for i := range rows {
		for k := range columns {
			out[k*rows+i] = m[i*columns+k]
		}
	}
	return out
}

// writeConstants writes a model that returns constants, and returns its path. A batch of -1 is one
// of any size.
func writeConstants(t *testing.T, batch int, metadata map[string]string, constants ...constant) string {
	t.Helper()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, batch, 3, imageSide, imageSide)
	mean := b.ReduceMean(x, false, 1, 2, 3) // batch
	for _, c := range constants {
		var y onnx.Value
		if c.unbatched {
			// The mean over the batch keeps the output without a batch axis.
			rows := b.Const("", tensor.Tensor{Shape: c.shape, Data: c.values})
			y = b.Add(rows, b.ReduceMean(mean, false))
		} else {
			ones := slices.Repeat([]int{1}, len(c.shape))
			value := b.Const("", tensor.Tensor{Shape: append([]int{1}, c.shape...), Data: c.values})
			// A part of the mean leaves fractions fractions.
			y = b.Add(value, b.Mul(b.Reshape(mean, append([]int{-1}, ones...)...), b.Scalar(1./1024)))
		}
		switch {
		case c.op == "Sigmoid":
			y = b.Sigmoid(y)
		case c.op != "":
			y = b.Op(c.op, onnx.Attrs{"axis": cmp.Or(c.axis, 1)}, y)
		}
		info := onnx.ValueInfo{Name: c.name, Type: onnx.Float}
		if c.typ != 0 {
			info.Type, y = c.typ, b.Cast(y, c.typ)
		}
		if c.unbatched {
			info.Shape = []onnx.Dim{{Size: -1, Symbol: "n"}}
			for _, d := range c.shape[1:] {
				info.Shape = append(info.Shape, onnx.Dim{Size: d})
			}
			if c.undeclared {
				info.Shape[1].Size = -1
			}
		} else {
			info.Shape = []onnx.Dim{{Size: batch, Symbol: "batch"}}
			for _, d := range c.shape {
				info.Shape = append(info.Shape, onnx.Dim{Size: d})
			}
		}
		b.OutputInfo(info, y)
	}
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range metadata {
		m = m.WithMetadata(key, value)
	}
	path := filepath.Join(t.TempDir(), "net.onnx")
	raw, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// decode opens a model, runs it, and returns the format and the decoded outputs.
func decode(t *testing.T, path string, s output.Setting) (*decoded.Format, tensor.Tensor) {
	t.Helper()
	m, err := modeltest.Open(t, path, model.Options{Decode: s})
	if err != nil {
		t.Fatal(err)
	}
	f, guessed := m.Decoded()
	if f == nil {
		t.Fatal("no output is decoded")
	}
	if guessed == s.IsSet() {
		t.Errorf("the layout was inferred: %v, though it is set: %v", guessed, s.IsSet())
	}
	return f, run(t, m)
}

// run runs two black images, and returns the decoded output of both.
func run(t *testing.T, m *model.Model) tensor.Tensor {
	t.Helper()
	session, err := m.NewSession([]tensor.Layer{m.DecodedLayer()}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	buf, err := session.NewBuffers(2)
	if err != nil {
		t.Fatal(err)
	}
	images := []tensor.Tensor{tensor.New(3, imageSide, imageSide), tensor.New(3, imageSide, imageSide)}
	if err := session.Run(context.Background(), images, buf); err != nil {
		t.Fatal(err)
	}
	return buf.Layer(0)
}

// text formats boxes in pixels: left, top, right, bottom, class and score, and x, y and visibility
// of keypoints.
func text(f *decoded.Format, row []float32) string {
	boxes, finite := f.Boxes(nil, row)
	if !finite {
		return "not finite"
	}
	var out []string
	for _, b := range boxes {
		one := fmt.Sprintf("%.4g %.4g %.4g %.4g %s %.2f", b.Left*imageSide, b.Top*imageSide, b.Right*imageSide, b.Bottom*imageSide, f.ClassName(b.Class), b.Score)
		for _, p := range b.Keypoints {
			one += fmt.Sprintf(" (%.4g %.4g %v)", p.X*imageSide, p.Y*imageSide, p.Visible)
		}
		out = append(out, one)
	}
	return strings.Join(out, "; ")
}

// anchors returns the values of 21 anchors, which are the given rows followed by zeros: 21 x
// columns or, with columnsFirst, columns x 21.
func anchors(columns int, columnsFirst bool, rows ...[]float32) []float32 {
	out := make([]float32, 21*columns)
	for i := range 21 {
		for c := range columns {
			v := float32(0)
			if i < len(rows) {
				v = rows[i][c]
			}
			if columnsFirst {
				out[c*21+i] = v
			} else {
				out[i*columns+c] = v
			}
		}
	}
	return out
}

func logOdds(p float64) float32 { return float32(math.Log(p / (1 - p))) }
