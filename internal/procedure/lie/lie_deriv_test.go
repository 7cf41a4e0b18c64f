package lie_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/procedure/lie"
	"github.com/noether-ml/noether/internal/procedure/proceduretest"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// formulaWeight returns the values of a weight, computed from its name and shape as by
// testdata/lie_deriv.py, so that no weights are stored.
func formulaWeight(name string, shape []int64) []float32 {
	n, sumOfBytes := 1, 0
	for _, d := range shape {
		n *= int(d)
	}
	for _, c := range []byte(name) {
		sumOfBytes += int(c)
	}
	values := make([]float32, n)
	for i := range values {
		v := math.Sin(7*float64(sumOfBytes) + 0.61*float64(i) + 0.013*float64(i%97))
		switch {
		case strings.HasSuffix(name, "running_var"):
			v = 1 + 0.5*v
		case len(shape) == 1 && strings.HasSuffix(name, "weight"):
			v = 1 + 0.25*v
		case len(shape) == 1:
			v *= 0.1
		default:
			v *= math.Sqrt(2*float64(shape[0])/float64(n)) * 1.4
		}
		values[i] = float32(v)
	}
	return values
}

// formulaImage returns the image of testdata/lie_deriv.py: waves and a rectangle.
func formulaImage(side int) tensor.Tensor {
	t := tensor.New(1, 3, side, side)
	i := 0
	for c := range 3 {
		for y := range side {
			for x := range side {
				c, x, y := float64(c), float64(x), float64(y)
				v := 0.5 + 0.2*math.Sin(0.31*x+0.17*y+c) + 0.2*math.Sin(0.07*x*(1+0.3*c)-0.23*y)
				if math.Abs(x-20) < 9 && math.Abs(y-40) < 7 {
					v += 0.1
				}
				t.Data[i] = float32(v)
				i++
			}
		}
	}
	return t
}

// openFormulaNetwork opens a graph of testdata, which has no weights, with those of formulaWeight.
func openFormulaNetwork(t *testing.T, name string) *model.Model {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".onnx"))
	if err != nil {
		t.Fatal(err)
	}
	var p pb.ModelProto
	if err := proto.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	for _, w := range p.Graph.Initializer {
		w.FloatData = formulaWeight(w.GetName(), w.Dims)
	}
	if raw, err = proto.Marshal(&p); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name+".onnx")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := modeltest.Open(t, path, model.Options{Layers: []string{"all"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestLieDeriv compares with the code of Gruver et al. 2023, github.com/ngruver/lie-deriv (run by
// testdata/lie_deriv.py), on torchvision's ResNet and ViT. It compares the mean squares of the Lie
// derivatives of the class probabilities and of the network up to each module, and the contribution
// of each module.
func TestLieDeriv(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/lie_deriv.json")
	if err != nil {
		t.Fatal(err)
	}
	const classes = 10 // of the networks: a contribution is a mean over the probabilities
	type network struct {
		Layers []struct {
			Module string // name in PyTorch
			Tensor string // its output in the ONNX file
			// By generator, a family of transformations. Lee is the local equivariance error: the mean
			// square of the Lie derivative of the network up to the module. Terms are the squared norms
			// of the module's parts of the Lie derivative of the probabilities.
			Lee, Terms map[string]float64
		}
		Output  map[string]float64 // local equivariance error of the probabilities
		Between []string           // outputs of the additions between the modules
	}
	var golden map[string]network
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden) != 2 { // ResNet and ViT
		t.Errorf("%d networks, want 2", len(golden))
	}
	for name, want := range golden {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := openFormulaNetwork(t, name)
			var layers []tensor.Layer
			chosen := slices.Clone(want.Between) // so that the additions are no part of the next module
			for _, l := range want.Layers {
				chosen = append(chosen, l.Tensor)
			}
			for _, l := range m.Layers() {
				if slices.Contains(chosen, l.Name) {
					layers = append(layers, l)
				}
			}
			scores := map[string]float64{}
			run := func(s lie.Settings, generators ...string) {
				s.Generators, s.Slopes = generators, lie.Forward
				p, err := lie.New(s)
				// A job is one run of the measure on a model and its data, here one image (see the
				// type images). A is the index of the layer of a score; that of the output is
				// negative.
				j := proceduretest.Job(procedure.Subject{Name: name, Model: m, Layers: layers}, images{formulaImage(65)})
				for _, s := range proceduretest.RunJob(t, p, err, j) {
					layer := "output"
					if s.A >= 0 {
						layer = layers[s.A].Name
					}
					scores[layer+" "+s.Factor+" "+s.Statistic] = s.Value
				}
			}
			run(lie.Defaults(), "translate-x", "rotate", "scale")
			withoutContributions := lie.Defaults()
			withoutContributions.Contributions = false
			run(withoutContributions, "translate-y", "shear-x", "shear-y", "brightness")
			compared := 0
			// The largest term by generator, since those of equivariant modules are 0 up to rounding.
			largest := map[string]float64{}
			for _, l := range want.Layers {
				for g, v := range l.Terms {
					largest[g] = max(largest[g], v)
				}
			}
			compare := func(what, key string, want, rounding float64) {
				compared++
				if got, ok := scores[key]; !ok || !(math.Abs(got-want) <= 1e-3*want+rounding) {
					t.Errorf("%s = %g, want %g, as by lie-deriv", what, got, want)
				}
			}
			for g, v := range want.Output {
				compare("output "+g, "output "+g+" lee", v, 0)
			}
			for _, l := range want.Layers {
				if !slices.ContainsFunc(layers, func(x tensor.Layer) bool { return x.Name == l.Tensor }) {
					t.Errorf("%s: the model has no layer %s", l.Module, l.Tensor)
					continue
				}
				for g, v := range l.Lee {
					compare(l.Module+" lee "+g, l.Tensor+" "+g+" lee", v, 0)
				}
				for paperName, name := range map[string]string{"translation": "translate-x", "rotation": "rotate", "scale": "scale"} {
					compare(l.Module+" contribution "+name, l.Tensor+" "+name+" contribution", l.Terms[paperName]/classes, 1e-7*largest[paperName])
				}
			}
			t.Logf("%d values of %d modules", compared, len(want.Layers))
			if len(want.Output) == 0 || len(want.Layers) == 0 || len(largest) != 3 {
				t.Error("the golden file lacks the output, the modules or the terms of three generators")
			}
		})
	}
}
