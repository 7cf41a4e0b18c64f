package cdbn

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// golden holds testdata/step.json: training steps by contrastive divergence in NumPy, of one layer
// with Gaussian and one with binary visible units. Target to Rate are fields of Settings.
type golden struct {
	B, C, H, W                  int // samples of a batch, channels, height and width of an image
	K, F                        int // groups of hidden units, which share a filter; its side
	Target, Weight, Decay, Rate float64
	Momentum                    []float32 // of each step
	Cases                       []struct {
		Binary     bool
		Start, End map[string][]float32 // weights before the first and after the last step
		// Images, and uniform random numbers for sampling, of each step.
		V, U [][]float32
		// Reconstruction error and mean activation, of each step.
		Error, Activity []float64
	}
}

// near fails the test if two slices differ by more than a tolerance anywhere.
func near(t *testing.T, name string, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d values, want %d", name, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= tolerance) {
			t.Fatalf("%s: value %d is %g, want %g", name, i, got[i], want[i])
		}
	}
}

// Two training steps with given random numbers agree with a NumPy implementation that loops over
// positions.
func TestStepsGolden(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/step.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	for _, c := range g.Cases {
		s := Settings{Units: g.K, Filter: g.F, Block: 2, Binary: c.Binary, Target: g.Target, Weight: g.Weight, Decay: g.Decay, Rate: g.Rate, Batch: g.B}
		e, err := newStepper(orttest.Load(t), s, []int{g.C, g.H, g.W})
		if err != nil {
			t.Fatal(err)
		}
		defer e.close()
		for name, values := range c.Start {
			copy(ort.Data[float32](e.in[name]), values)
		}
		for i, m := range g.Momentum {
			copy(ort.Data[float32](e.in["v"]), c.V[i])
			copy(ort.Data[float32](e.in["u"]), c.U[i])
			ort.Data[float32](e.in["momentum"])[0] = m
			p, err := e.step(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(p.Error-c.Error[i]) > 1e-4 || math.Abs(p.Activity-c.Activity[i]) > 1e-6 {
				t.Errorf("step %d: error %g and activity %g, want %g and %g", i+1, p.Error, p.Activity, c.Error[i], c.Activity[i])
			}
		}
		for name, values := range c.End {
			near(t, name, e.value(name).Data, values, 1e-5)
		}
	}
}

// randomLayer returns a layer of k groups with random filters W of f x f on c channels, random
// biases of the groups (B) and channels (C), and blocks of 2 x 2 units, at most one of which is on.
func randomLayer(k, c, f int, seed uint64) *Layer {
	r := rand.New(rand.NewPCG(seed, 0))
	fill := func(size float64, shape ...int) tensor.Tensor {
		t := tensor.New(shape...)
		for i := range t.Data {
			t.Data[i] = float32(size * r.NormFloat64())
		}
		return t
	}
	return &Layer{W: fill(0.4, k, c, f, f), B: fill(0.5, k), C: fill(0.1, c), Scale: 1, Block: 2}
}

// run returns the outputs of m for x.
func run(t *testing.T, m *onnx.Model, x tensor.Tensor) []tensor.Tensor {
	t.Helper()
	rt := orttest.Load(t)
	s, err := rt.NewSession(m, ort.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := rt.NewValue(onnx.Float, x.Shape...)
	if err != nil {
		t.Fatal(err)
	}
	copy(ort.Data[float32](in), x.Data)
	out := make([]*ort.Value, len(s.Outputs()))
	if err := s.Run(t.Context(), []*ort.Value{in}, out); err != nil {
		t.Fatal(err)
	}
	var tensors []tensor.Tensor
	for _, v := range out {
		tensors = append(tensors, v.Tensor().Clone())
		v.Close()
	}
	return tensors
}

// The probability that a pooling unit, of which each block has one, is on is the probability that a
// unit of its block is on. The second layer takes the pooling units of the first as its input.
func TestModel(t *testing.T) {
	t.Parallel()
	l := randomLayer(3, 2, 3, 1)
	// Images are multiplied by Scale.
	l.Scale = 0.5
	x := randomLayer(1, 2, 6, 2).W // an image of 1 x 2 x 6 x 6: random values
	m, err := Model(l)
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, m, x)[0]
	if len(got.Shape) != 4 || got.Shape[1] != 3 || got.Shape[2] != 2 || got.Shape[3] != 2 {
		t.Fatalf("the pooling units have the shape %v", got.Shape)
	}
	for k := range 3 {
		for by := range 2 {
			for bx := range 2 {
				// The partition function: 1 plus the sum of exp(input) over the units of the block.
				// Its reciprocal is the probability that none is on.
				partition := 1.0
				for place := range 4 { // the units of the block, row by row
					y, x0 := 2*by+place/2, 2*bx+place%2
					input := float64(l.B.Data[k])
					for i := range 2 * 9 { // 2 channels of filters of 3 x 3
						c, dy, dx := i/9, i/3%3, i%3
						input += float64(l.W.Data[k*18+i]) * 0.5 * float64(x.Data[(c*6+y+dy)*6+x0+dx])
					}
					partition += math.Exp(input)
				}
				if v, want := got.Data[(k*2+by)*2+bx], 1-1/partition; math.Abs(float64(v)-want) > 1e-6 {
					t.Errorf("unit %d of block %d, %d: %g, want %g", k, by, bx, v, want)
				}
			}
		}
	}
	first, second := randomLayer(4, 1, 10, 3), randomLayer(5, 4, 10, 4)
	if m, err = Model(first, second); err != nil {
		t.Fatal(err)
	}
	out := run(t, m, tensor.New(2, 1, 31, 31))
	if s := out[1].Shape; s[1] != 5 || s[2] != 1 || s[3] != 1 {
		t.Errorf("on 31 x 31 the second layer has the shape %v, want one position, since its receptive field is 31", s)
	}
	if _, err := Model(first, randomLayer(5, 3, 10, 4)); err == nil {
		t.Error("a layer of 3 channels on a layer of 4 groups: no error")
	}
	largeBias := randomLayer(2, 1, 3, 5)
	for i := range largeBias.B.Data {
		largeBias.B.Data[i] = 500 // exp(500) is infinite in float32
	}
	if m, err = Model(largeBias); err != nil {
		t.Fatal(err)
	}
	for _, v := range run(t, m, tensor.New(1, 1, 4, 4))[0].Data {
		if v != 1 {
			t.Errorf("a unit with input 500 has the probability %g, want %g", v, 1.0)
		}
	}
}

// Images returns the filters of the second layer in pixels: sums of the filters of the first layer,
// shifted by the side of a block per position.
func TestImagesShiftFilters(t *testing.T) {
	t.Parallel()
	first, second := randomLayer(2, 1, 3, 1), randomLayer(1, 2, 2, 2)
	image := Images(first, second)[0]
	if image.Shape[1] != 5 || image.Shape[2] != 5 {
		t.Fatalf("the image has the shape %v, want sides of 5: filters of side 3, 2 pixels apart", image.Shape)
	}
	for i, got := range image.Data {
		var want float64
		for j, w := range second.W.Data {
			// Weight j is at row j/2%2 and column j%2 of the second layer's filter of channel k,
			// and moves the first layer's filter by 2 pixels, the side of a block, for each.
			k, y, x := j/4, i/5-j/2%2*2, i%5-j%2*2
			if y >= 0 && y < 3 && x >= 0 && x < 3 {
				want += float64(w) * float64(first.W.Data[k*9+y*3+x])
			}
		}
		if math.Abs(float64(got)-want) > 1e-6 {
			t.Errorf("pixel %d is %g, want %g", i, got, want)
		}
	}
}

// On images of bars the reconstruction error decreases and the mean activation reaches its target.
// A second training gives the same filters.
func TestTrainBars(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	x := tensor.New(200, 1, 15, 15)
	for i := range x.Shape[0] {
		p := x.At(i).Data
		for range 3 { // bars
			at, vertical := r.IntN(15), r.IntN(2) == 0
			for j := range 15 {
				if vertical {
					p[j*15+at] = 1
				} else {
					p[at*15+j] = 1
				}
			}
		}
		for j := range p {
			p[j] -= 0.2 // three bars of fifteen pixels cover about a fifth of 15 x 15
		}
	}
	l, err := Train(t.Context(), orttest.Load(t), x, Settings{Units: 4, Filter: 6, Target: 0.05, Rate: 0.1, Steps: 600})
	if err != nil {
		t.Fatal(err)
	}
	mean := func(points []Point) (e, a float64) {
		for _, p := range points {
			e, a = e+p.Error/float64(len(points)), a+p.Activity/float64(len(points))
		}
		return e, a
	}
	before, _ := mean(l.Curve[:20])
	after, activity := mean(l.Curve[580:])
	if after > 0.7*before || math.Abs(activity-0.05) > 0.03 {
		t.Errorf("the error changes from %.3f to %.3f, want at most 0.7 of it; the mean activation is %.3f, want 0.05", before, after, activity)
	}
	again, err := Train(t.Context(), orttest.Load(t), x, Settings{Units: 4, Filter: 6, Target: 0.05, Rate: 0.1, Steps: 600})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "the filters of a second training", again.W.Data, l.W.Data, 0)
	encoded, err := Encode(t.Context(), orttest.Load(t), l, x)
	if err != nil {
		t.Fatal(err)
	}
	// Filters of side 6 have 10 x 10 positions in 15 x 15 pixels, which are 5 x 5 blocks.
	if s := encoded.Shape; s[0] != 200 || s[1] != 4 || s[2] != 5 || s[3] != 5 {
		t.Errorf("the encoding has the shape %v, want [200 4 5 5]", s)
	}
}

func TestTrainErrors(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	x := tensor.New(3, 1, 11, 11)
	x.Data[0] = 1
	infinite := x.Clone()
	infinite.Data[130] = float32(math.Inf(1)) // in the second image: each has 121 values
	for _, c := range []struct {
		x    tensor.Tensor
		s    Settings
		want string
	}{
		{tensor.New(3, 11, 11), Settings{Units: 2}, "n x channels x height x width"},
		{x, Settings{}, "0 units"},
		{x, Settings{Units: 2, Filter: 9}, "have 3 positions, not a multiple of the block size 2"},
		{x, Settings{Units: 2, Filter: 12}, "0 positions"},
		{x, Settings{Units: 2, Rate: -1}, "rate -1"},
		{x, Settings{Units: 2, Target: 2}, "sparsity target 2"},
		{x, Settings{Units: 2, Target: 0.3}, "at most one of the 4 units"},
		{infinite, Settings{Units: 2}, "image 1 has the value"},
		{tensor.New(3, 1, 11, 11), Settings{Units: 2}, "all images are 0"},
		{x, Settings{Units: 2, Rate: 1e6, Steps: 200}, "lower the rate"},
	} {
		if _, err := Train(t.Context(), rt, c.x, c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}
