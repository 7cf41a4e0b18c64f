package train

import (
	"encoding/json"
	"hash/crc32"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// hashed returns a tensor of numbers in [0, 1), of a hash of the name and the index, as
// testdata/resnet_forward.py draws them.
func hashed(name string, shape ...int) tensor.Tensor {
	t := tensor.New(shape...)
	offset := crc32.ChecksumIEEE([]byte(name))
	for i := range t.Data {
		h := (uint32(i)+1)*2654435761 + offset
		h = (h ^ h>>16) * 0x85EBCA6B
		h = (h ^ h>>13) * 0xC2B2AE35
		t.Data[i] = float32((h^h>>16)>>8) / (1 << 24)
	}
	return t
}

// TestResNetForward compares the outputs of ResNets with those of torchvision's that have the same
// weights, and the numbers of parameters (testdata/resnet_forward.py).
func TestResNetForward(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	raw, err := os.ReadFile("testdata/resnet_forward.json")
	if err != nil {
		t.Fatal(err)
	}
	var torchvision map[string]struct {
		Parameters int
		Y          []float64
	}
	if err := json.Unmarshal(raw, &torchvision); err != nil {
		t.Fatal(err)
	}
	for name, depth := range map[string]int{"resnet18": 18, "resnet50": 50} {
		n, err := StandardResNet(depth, 0)
		if err != nil {
			t.Fatal(err)
		}
		n.Shape, n.Classes, n.Stem = []int{3, 64, 96}, 10, ImageNetStem
		m, err := n.Build()
		if err != nil {
			t.Fatal(err)
		}
		if _, got := trainable(t, m); got != torchvision[name].Parameters {
			t.Errorf("%s has %d parameters, torchvision's %d", name, got, torchvision[name].Parameters)
		}
		values := map[string]tensor.Tensor{}
		for _, w := range m.Weights() {
			v := hashed(w.Name, w.Sizes()...)
			in := v.Len() / v.Shape[0] // inputs of a convolution's output
			if v.Rank() == 2 {         // the linear layer, inputs x outputs
				in = v.Shape[0]
			}
			for i, u := range v.Data {
				switch {
				case v.Rank() > 1:
					v.Data[i] = (2*u - 1) * float32(math.Sqrt(6/float64(in)))
				case strings.HasSuffix(w.Name, ".scale") || strings.HasSuffix(w.Name, ".variance"):
					v.Data[i] = 0.5 + u
				default:
					v.Data[i] = u - 0.5
				}
			}
			values[w.Name] = v
		}
		if m, err = rewrite.WithWeights(m, values); err != nil {
			t.Fatal(err)
		}
		s, err := rt.NewSession(m, ort.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		x := hashed("x", 2, 3, 64, 96)
		in, err := ort.Wrap(rt, x.Data, x.Shape...)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		out := make([]*ort.Value, 1)
		if err := s.Run(t.Context(), []*ort.Value{in}, out); err != nil {
			t.Fatal(err)
		}
		defer out[0].Close()
		y := out[0].Tensor()
		largest, difference := 0.0, 0.0
		for i, want := range torchvision[name].Y {
			largest, difference = max(largest, math.Abs(want)), max(difference, math.Abs(want-float64(y.Data[i])))
		}
		if y.Len() != len(torchvision[name].Y) || !(difference < 1e-5*largest) {
			t.Errorf("%s differs from torchvision's by %g, of outputs up to %g", name, difference, largest)
		}
	}
}
