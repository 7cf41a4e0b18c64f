package firing_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/procedure/firing"
	"github.com/noether-ml/noether/internal/procedure/proceduretest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A recorder holds the unit scores and tuning curves that a job reports. A job is one run of the
// measure on a model and its data, a unit one value of a layer, and a tuning curve the values of a
// unit on a trajectory: an input with its transformed versions.
type recorder struct {
	units  []measure.UnitScore
	curves []measure.UnitResponse
}

// newJob returns a job on all layers of m that records its unit scores and curves in to.
func newJob(m *model.Model, data dataset.Source, to *recorder) *procedure.Job {
	j := proceduretest.Job(procedure.Subject{Name: "net", Model: m, Layers: m.Layers()}, data)
	j.Key.Data = "data"
	j.Units = func(u []measure.UnitScore) error { to.units = append(to.units, u...); return nil }
	j.Curves = func(c []measure.UnitResponse) error { to.curves = append(to.curves, c...); return nil }
	return j
}

// openModel opens a test model with the given options.
func openModel(t testing.TB, o testmodel.Options) *model.Model {
	t.Helper()
	m, err := modeltest.Open(t, testmodel.Write(t, t.TempDir(), "net", o), model.Options{Layers: []string{"all"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// shuffledGratings returns gratings, and the same data set in a random order.
func shuffledGratings(t testing.TB) (*dataset.Gratings, dataset.Source) {
	t.Helper()
	g, err := dataset.OpenGratings(dataset.GratingsOptions{Size: 16, Orientations: []float64{0, 45, 90, 135}})
	if err != nil {
		t.Fatal(err)
	}
	return g, dataset.Shuffle(g, 5)
}

// shapes returns n images of shapes in a random order.
func shapes(t testing.TB, n int) dataset.Source {
	t.Helper()
	s, err := dataset.OpenShapes(dataset.ShapesOptions{N: n, Size: 16})
	if err != nil {
		t.Fatal(err)
	}
	return dataset.Shuffle(s, 3)
}

// turns returns a transformation by rotations, one for each angle.
func turns(degrees ...float64) *procedure.Transform {
	t := &procedure.Transform{Name: "turn"}
	for _, d := range degrees {
		t.Values = append(t.Values, procedure.Value{Parameter: fmt.Sprint(d), Transform: transform.Rotate{Angle: transform.Fixed(d)}})
	}
	return t
}

// runJob runs the measure with the settings and returns the scores of the layers.
func runJob(t testing.TB, s firing.Settings, j *procedure.Job) []measure.PairScore {
	t.Helper()
	p, err := firing.New(s)
	return proceduretest.RunJob(t, p, err, j)
}

// activations returns the activations of a layer on n images, n x units. It computes them in
// batches of 32, as the measure does; the last image fills up the last batch.
func activations(t testing.TB, m *model.Model, layer int, images []tensor.Tensor) tensor.Tensor {
	t.Helper()
	session, err := m.NewSession(m.Layers()[layer:layer+1], false)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	buf, err := session.NewBuffers(32)
	if err != nil {
		t.Fatal(err)
	}
	units := tensor.Size(m.Layers()[layer].Shape)
	out := tensor.New(len(images), units)
	for at := 0; at < len(images); at += 32 {
		batch := make([]tensor.Tensor, 32)
		for i := range batch {
			batch[i] = images[min(at+i, len(images)-1)]
		}
		if err := session.Run(t.Context(), batch, buf); err != nil {
			t.Fatal(err)
		}
		copy(out.Data[at*units:], buf.Layer(0).Data)
	}
	return out
}

// drawn returns the inputs of all samples of src.
func drawn(t testing.TB, src dataset.Source, f dataset.Frame) []tensor.Tensor {
	t.Helper()
	var out []tensor.Tensor
	for i := range src.Len() {
		s, err := src.At(t.Context(), i, f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s.Input)
	}
	return out
}

// sameUnits checks that reported unit scores are those of ScoreUnits. ScoreUnits gives the
// threshold of sign times value, a reported score that of the value. A constant unit is not
// selective.
func sameUnits(t *testing.T, what string, rows []measure.UnitScore, want []firing.Unit) {
	t.Helper()
	if len(rows) != len(want) {
		t.Fatalf("%s: %d units, want %d", what, len(rows), len(want))
	}
	for i, w := range want {
		got := rows[i]
		if got.Unit != i || got.Sign != w.Sign || got.Threshold != float64(w.Sign)*w.Threshold || math.Abs(got.Global-w.Global) > 1e-12 ||
			math.Abs(got.Local-w.Local) > 1e-12 || got.Selective == w.Constant || got.Strongest != w.Strongest[0] {
			t.Fatalf("%s, unit %d: %+v, want %+v", what, i, got, w)
		}
	}
}

// rowsOf returns the unit scores of one layer and factor: what varies on a trajectory, such as
// phase, or "" for a transformation.
func rowsOf(all []measure.UnitScore, layer int, factor string) []measure.UnitScore {
	return slices.DeleteFunc(slices.Clone(all), func(u measure.UnitScore) bool { return u.Layer != layer || u.Factor != factor })
}

// find returns the score of a layer, factor and statistic.
func find(t *testing.T, scores []measure.PairScore, layer int, factor, statistic string) measure.Score {
	t.Helper()
	for _, s := range scores {
		if s.A == layer && s.Factor == factor && s.Statistic == statistic {
			return s.Score
		}
	}
	t.Fatalf("no %s %s of layer %d", statistic, factor, layer)
	return measure.Score{}
}

// same reports whether values that may contain NaN are equal.
func same(a, b any) bool {
	return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) || reflect.DeepEqual(a, b)
}
