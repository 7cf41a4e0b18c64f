package demo

import (
	"math"
	"slices"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
)

func TestGaborPairs(t *testing.T) {
	t.Parallel()
	bank := gabor()
	half := bank.Shape[0] / 2
	for i := range half {
		even, odd := bank.At(i).Data, bank.At(half+i).Data
		var sumEven, sumOdd, product, norm float64
		for k := range even {
			e, o := float64(even[k]), float64(odd[k])
			sumEven, sumOdd, product, norm = sumEven+e, sumOdd+o, product+e*o, norm+e*e+o*o
		}
		if math.Abs(sumEven) > 1e-5 || math.Abs(sumOdd) > 1e-5 {
			t.Errorf("filter %d answers to a plain surface: sums %g and %g", i, sumEven, sumOdd)
		}
		if math.Abs(product) > 1e-6 || math.Abs(norm-1) > 1e-5 {
			t.Errorf("filter %d: its halves have product %g and squared norm %g", i, product, norm)
		}
	}
}

// TestQuarterTurnPermutesTheBank checks that six steps of 15 degrees are a quarter turn: an even
// filter becomes another one of the bank exactly, and so does an odd one, whose sign turns over
// where the direction has gone past 180 degrees.
func TestQuarterTurnPermutesTheBank(t *testing.T) {
	t.Parallel()
	bank, lengths := gabor(), len(waves())
	half := bank.Shape[0] / 2
	for i := range half {
		to, sign := i+6*lengths, float32(1)
		if to >= half {
			to, sign = to-half, -1
		}
		for r := range kernel {
			for c := range kernel {
				from, at := r*kernel+c, (kernel-1-c)*kernel+r
				if d := bank.At(to).Data[at] - bank.At(i).Data[from]; math.Abs(float64(d)) > 1e-6 {
					t.Fatalf("even filter %d, turned, differs from filter %d by %g", i, to, d)
				}
				if d := bank.At(half + to).Data[at] - sign*bank.At(half + i).Data[from]; math.Abs(float64(d)) > 1e-6 {
					t.Fatalf("odd filter %d, turned, differs from filter %d by %g", i, to, d)
				}
			}
		}
	}
}

// TestFiltersPreferTheirDirection checks that each filter answers best, of its wave length, to a
// wave of its own direction.
func TestFiltersPreferTheirDirection(t *testing.T) {
	t.Parallel()
	bank, lengths := gabor(), waves()
	half := bank.Shape[0] / 2
	for w, length := range lengths {
		for want := range directions {
			sin, cos := math.Sincos(math.Pi * float64(want) / directions)
			best, most := -1, 0.0
			for d := range directions {
				i := d*len(lengths) + w
				var re, im float64
				for k := range kernel * kernel {
					x, y := float64(k%kernel), -float64(k/kernel)
					s := math.Sin(2*math.Pi*(x*cos+y*sin)/length + 0.7)
					re += s * float64(bank.At(i).Data[k])
					im += s * float64(bank.At(half + i).Data[k])
				}
				if e := math.Hypot(re, im); e > most {
					best, most = d, e
				}
			}
			if best != want {
				t.Errorf("a wave of length %g in direction %d excites direction %d most", length, want, best)
			}
		}
	}
}

func TestLayersHaveGoodNames(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]struct {
		see    func(*onnx.Builder) onnx.Value
		layers []string
	}{
		"oriented":  {oriented, []string{"value", "gabor", "energy", "pooled"}},
		"invariant": {invariant, []string{"value", "gabor", "energy", "strongest", "pooled"}},
	} {
		b := onnx.NewBuilder(opset)
		look.see(b)
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		axes, err := infer.Axes(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range m.Layers() {
			if slices.Contains(look.layers, l.Name) {
				got = append(got, l.Name)
				want := onnx.Axes("NCHW")
				if l.Name == "pooled" {
					want = "NC"
				}
				if axes[l.Name] != want {
					t.Errorf("%s: layer %s has axes %s, want %s", name, l.Name, axes[l.Name], want)
				}
			}
		}
		if !slices.Equal(got, look.layers) {
			t.Errorf("%s: layers %v, want %v", name, got, look.layers)
		}
	}
}
