package probe

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// quantiser returns a model whose layer has the codes of two pixels of factorImages: the index of the
// nearest of four values.
func quantiser(t testing.TB) *model.Model {
	t.Helper()
	b := onnx.NewBuilder(17)
	x := b.Reshape(b.Input("x", onnx.Float, -1, 1, 2, 2), -1, 4, 1)
	distance := b.Abs(b.Sub(b.Slice(x, 1, 0, 2, 1), b.Const("codebook", tensor.Tensor{Shape: []int{1, 1, 4}, Data: []float32{0.125, 0.375, 0.625, 0.875}})))
	b.Output("codes", b.Cast(b.Op("ArgMin", onnx.Attrs{"axis": 2, "keepdims": 0}, distance), onnx.Float))
	path := testmodel.Save(t, filepath.Join(t.TempDir(), "quantiser.onnx"), b)
	out, err := modeltest.Open(t, path, model.Options{Layers: []string{"codes"}, Scores: "none"})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// redraw is a transformation that replaces the pixels by uniform random numbers.
type redraw struct{ pixels [4]float32 }

func (t redraw) Draw(r *rand.Rand) transform.Op {
	for k := range t.pixels {
		t.pixels[k] = r.Float32()
	}
	return t
}
func (redraw) Random() bool                 { return true }
func (t redraw) Apply(dst, _ tensor.Tensor) { copy(dst.Data, t.pixels[:]) }

// TestDiscreteCodes checks probes of codes where their accuracy is known: 1 for the identity, and for
// an exchange of the two codes, which few of them survive; and chance, a quarter, if the codes of T(x)
// are independent of those of x.
func TestDiscreteCodes(t *testing.T) {
	t.Parallel()
	s := RepresentationSettings{EquivarianceSettings: equivarianceDefaults(), Codes: true}
	s.Probe, s.Hidden, s.Rate, s.Decay, s.Seeds, s.Epochs, s.Pool = []string{SLP, MLP}, []int{16}, 0.03, 0, 1, 25, "flatten"
	m, err := RepresentationEquivariance(s)
	of := func(tr transform.Transform) *procedure.Transform {
		return &procedure.Transform{Name: "t", Identity: "t", Values: []procedure.Value{{Transform: tr}}}
	}
	for name, c := range map[string]struct {
		transform                  transform.Transform
		low, high, unchanged, most float64 // bounds of the accuracy and of the codes that do not change
	}{
		"identity":    {transform.Identity{}, 1, 1, 1, 1},
		"exchange":    {swap{0, 1}, 1, 1, 0.1, 0.4},
		"independent": {redraw{}, 0.1, 0.42, 0.1, 0.42},
	} {
		found := mustRun(t, m, err, factorJob(t, 500, quantiser(t), of(c.transform)))
		for _, kind := range s.Probe {
			a := found["accuracy "+kind]
			if a.Value < c.low || a.Value > c.high || a.N != 50 || math.IsNaN(a.Low) {
				t.Errorf("%s: accuracy of %s = %+v, want %g to %g of 50 samples", name, kind, a, c.low, c.high)
			}
			if a.Null < 0.08 || a.Null > 0.45 {
				t.Errorf("%s: null of %s = %g, want about a quarter", name, kind, a.Null)
			}
		}
		if u := found["identity-accuracy"].Value; u < c.unchanged || u > c.most {
			t.Errorf("%s: identity-accuracy is %g, want %g to %g", name, u, c.unchanged, c.most)
		}
		if b := found["baseline-accuracy"].Value; b < 0.1 || b > 0.45 {
			t.Errorf("%s: baseline-accuracy is %g, want about a quarter", name, b)
		}
	}
}

// TestCodesOfTheParameter checks that a probe of codes gets the parameter: a shift that is not known
// from x decides the code.
func TestCodesOfTheParameter(t *testing.T) {
	t.Parallel()
	s := RepresentationSettings{EquivarianceSettings: equivarianceDefaults(), Codes: true}
	s.Probe, s.Hidden, s.Rate, s.Decay, s.Seeds, s.Epochs, s.Pool, s.Nulls = []string{MLP}, []int{32}, 0.01, 0, 1, 60, "flatten", NoNulls
	m, err := RepresentationEquivariance(s)
	found := mustRun(t, m, err, factorJob(t, 1000, quantiser(t), shiftOf(0, -1, 1)))
	a, unchanged, baseline := found["accuracy mlp"], found["identity-accuracy"].Value, found["baseline-accuracy"].Value
	if a.Value < 0.85 || a.Value < unchanged+0.1 || a.Value < baseline+0.1 || !math.IsNaN(a.Null) {
		t.Errorf("accuracy is %+v, want at least 0.85, without a null; unchanged %g, most frequent %g", a, unchanged, baseline)
	}
}

// TestCodesErrors checks that ridge, values that are no whole numbers, and too many codes are
// errors, and that the key of a cell without codes is the old one.
func TestCodesErrors(t *testing.T) {
	t.Parallel()
	s := RepresentationSettings{EquivarianceSettings: equivarianceDefaults()}
	if text, err := json.Marshal(s); err != nil || strings.Contains(string(text), "codes") {
		t.Errorf("the settings are %s, %v", text, err)
	}
	s.Codes = true
	s.Pool = "flatten"
	m, err := RepresentationEquivariance(s)
	if err != nil {
		t.Fatal(err)
	}
	j := factorJob(t, 100, linearModel(t, identity()), &procedure.Transform{Name: "t", Identity: "t", Values: []procedure.Value{{Transform: transform.Identity{}}}})
	j.Progress = func(int64, string) {}
	if _, err := m.Run(t.Context(), j); err == nil || !strings.Contains(err.Error(), "which is no code") {
		t.Errorf("codes of a layer of numbers: error %v", err)
	}
	s.Probe = []string{Ridge}
	if _, err := RepresentationEquivariance(s); err == nil || !strings.Contains(err.Error(), "ridge") {
		t.Errorf("ridge: error %v", err)
	}
	many := make([]float32, maxCodebook+1)
	for i := range many {
		many[i] = float32(i)
	}
	if _, err := codebook(features.NewTable(nil, 1, many)); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("%d codes: error %v", len(many), err)
	}
}
