package transform

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// extremes returns the allowed values among these: the ends of the range of a parameter and their
// neighbours, 0 and numbers near it, 1, -1, and the largest magnitude of any parameter.
func extremes(p Param) []float64 {
	var out []float64
	for _, v := range []float64{p.Min, math.Nextafter(p.Min, math.Inf(1)), -maxMagnitude, -1, 0, math.SmallestNonzeroFloat64, 1e-30, 1, maxMagnitude, math.Nextafter(p.Max, math.Inf(-1)), p.Max} {
		if p.Check(Fixed(v)) == nil {
			out = append(out, v)
		}
	}
	return out
}

// TestExtremesStayFinite checks that the results of every kind of transformation are finite for
// extreme values of each parameter.
func TestExtremesStayFinite(t *testing.T) {
	t.Parallel()
	for _, k := range Kinds() {
		for _, p := range k.Params {
			if p.Options != nil { // its value is a word
				continue
			}
			for _, v := range extremes(p) {
				args := Args{p.Name: Fixed(v)}
				for _, other := range k.Params {
					switch {
					case other.Name == p.Name || !other.Required:
					case other.Options != nil:
						args[other.Name] = Option(other.Options[0])
					default:
						args[other.Name] = Fixed(min(1, other.Max))
					}
				}
				tr, err := k.Make(args)
				if err != nil {
					continue // the value conflicts with another parameter
				}
				if i, out := firstNonFinite(tr); i >= 0 {
					t.Errorf("%s: %s = %g gives %g", k.Name, p.Name, v, out[i])
				}
			}
		}
	}
}

// firstNonFinite applies a transformation to an image or audio, and returns the index of the first
// value that is not finite, -1 if there is none, and the result.
func firstNonFinite(tr Transform) (int, []float32) {
	op := tr.Draw(rand.New(rand.NewPCG(1, 2)))
	src := tensor.New(3, 9, 9)
	if OnAudio(tr) {
		src = tensor.New(1, 4000)
	}
	for i := range src.Data {
		src.Data[i] = float32(i%11) / 10
	}
	var out tensor.Tensor
	if audio, ok := op.(AudioOp); ok {
		out.Data = audio.ApplyAudio(src.Data, 8000) // at 8000 Hz
	} else {
		out = tensor.New(src.Shape...)
		op.Apply(out, src)
	}
	return out.FirstNonFinite(), out.Data
}

func TestMakeRejectsNumbersBeyondFloat32(t *testing.T) {
	t.Parallel()
	k, _ := Lookup("brightness")
	for _, v := range []float64{1e40, -1e40} {
		if _, err := k.Make(Args{"factor": Fixed(v)}); err == nil || !strings.Contains(err.Error(), "brightness: factor must be at most 1e+30 in magnitude") {
			t.Errorf("%g: %v", v, err)
		}
	}
}
