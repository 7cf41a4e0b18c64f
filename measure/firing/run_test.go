package firing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/firing"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/ort/orttest"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// memory is a checkpoint.
type memory struct{ state []byte }

func (m *memory) Load() (io.ReadCloser, error) {
	if m.state == nil {
		return nil, nil
	}
	return io.NopCloser(bytes.NewReader(m.state)), nil
}

func (m *memory) Save(write func(io.Writer) error) error {
	var state bytes.Buffer
	err := write(&state)
	m.state = state.Bytes()
	return err
}

// kept is what a job hands over of single units.
type kept struct {
	units  []measure.UnitScore
	curves []measure.UnitResponse
}

func newJob(m *model.Model, data dataset.Source, to *kept) *procedure.Job {
	return &procedure.Job{A: procedure.Subject{Name: "net", Model: m, Layers: m.Layers()}, Data: data, Key: measure.Key{Seed: 1, Data: "data"},
		Checkpoint: &memory{}, Memory: 1 << 30, Progress: func(int64, string) {},
		Units:  func(u []measure.UnitScore) error { to.units = append(to.units, u...); return nil },
		Curves: func(c []measure.UnitResponse) error { to.curves = append(to.curves, c...); return nil },
		Read: func(ctx context.Context, places []int, f dataset.Frame) ([]dataset.Sample, error) {
			var list []dataset.Sample
			for s, err := range dataset.Read(ctx, data, places, f, dataset.ReadOptions{}) {
				var bad *dataset.BadSample
				if err != nil && !errors.As(err, &bad) {
					return nil, err
				}
				if err == nil {
					list = append(list, s)
				}
			}
			return list, nil
		}}
}

func openModel(t testing.TB, o testmodel.Options) *model.Model {
	t.Helper()
	m, err := model.Open(orttest.Load(t), testmodel.Write(t, t.TempDir(), "net", o), model.Options{Layers: []string{"all"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func shuffledGratings(t testing.TB) (*dataset.Gratings, dataset.Source) {
	t.Helper()
	g, err := dataset.OpenGratings(dataset.GratingsOptions{Size: 16, Orientations: []float64{0, 45, 90, 135}})
	if err != nil {
		t.Fatal(err)
	}
	return g, dataset.Shuffle(g, 5)
}

func shapes(t testing.TB, n int) dataset.Source {
	t.Helper()
	s, err := dataset.OpenShapes(dataset.ShapesOptions{N: n, Size: 16})
	if err != nil {
		t.Fatal(err)
	}
	return dataset.Shuffle(s, 3)
}

func turns(degrees ...float64) *procedure.Transform {
	t := &procedure.Transform{Name: "turn"}
	for _, d := range degrees {
		t.Values = append(t.Values, procedure.Value{Parameter: fmt.Sprint(d), Law: transform.Rotate{Angle: transform.Fixed(d)}})
	}
	return t
}

func runJob(t testing.TB, s firing.Settings, j *procedure.Job) []measure.PairScore {
	t.Helper()
	m, err := firing.New(s)
	if err != nil {
		t.Fatal(err)
	}
	if why := m.Skip(j); why != "" {
		t.Fatal(why)
	}
	scores, err := m.Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return scores
}

// activations are a layer's values on pictures, n x units, by runs of as many pictures as the measure takes.
func activations(t testing.TB, m *model.Model, layer int, pictures []tensor.Tensor) tensor.Tensor {
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
	out := tensor.New(len(pictures), units)
	for at := 0; at < len(pictures); at += 32 {
		batch := make([]tensor.Tensor, 32)
		for i := range batch {
			batch[i] = pictures[min(at+i, len(pictures)-1)]
		}
		if err := session.Run(t.Context(), batch, buf); err != nil {
			t.Fatal(err)
		}
		copy(out.Data[at*units:], buf.Layer(0).Data)
	}
	return out
}

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

// sameUnits holds rows of units against what Along says of the same responses.
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

func rowsOf(all []measure.UnitScore, layer int, factor string) []measure.UnitScore {
	return slices.DeleteFunc(slices.Clone(all), func(u measure.UnitScore) bool { return u.Layer != layer || u.Factor != factor })
}

// The measure finds for every unit of a network what Along finds when it holds all responses.
func TestGratingsOfANetwork(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{})
	base, data := shuffledGratings(t)
	var k kept
	scores := runJob(t, firing.Defaults(), newJob(m, data, &k))
	for layer := range m.Layers() {
		for _, path := range []struct {
			factor string
			walk   *dataset.GratingWalk
		}{{"phase", base.AlongPhase()}, {"orientation", base.AlongOrientation()}} {
			z := activations(t, m, layer, drawn(t, path.walk, m.Frame()))
			s := firing.Defaults()
			s.References = 1
			want, err := firing.Along(firing.Responses{Inputs: z.Slice(0, base.Len()), Pictures: z, Steps: path.walk.Trajectory}, s)
			if err != nil {
				t.Fatal(err)
			}
			rows := rowsOf(k.units, layer, path.factor)
			sameUnits(t, fmt.Sprint(m.Layers()[layer].Name, " ", path.factor), rows, want)
			var all []float64
			for _, r := range rows {
				all = append(all, r.Score)
			}
			got := find(t, scores, layer, path.factor, "invariance")
			if math.Abs(got.Value-firing.Network(all, 0.2)) > 1e-9 || got.N != len(rows) || !(got.Null < got.Value) {
				t.Errorf("layer %d, %s: %+v, want the mean %v of the top fifth", layer, path.factor, got, firing.Network(all, 0.2))
			}
		}
	}
	checkCurves(t, k)
}

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

// A curve shows its unit at its strongest input in the middle, and fires on as much of it as the unit's local rate says.
func checkCurves(t *testing.T, k kept) {
	t.Helper()
	type id struct {
		layer, unit int
		factor      string
	}
	fires, steps := map[id]int{}, map[id]int{}
	for _, c := range k.curves {
		i := id{c.Layer, c.Unit, c.Factor}
		steps[i]++
		if float64(c.Sign)*c.Value >= float64(c.Sign)*c.Threshold {
			fires[i]++
		}
	}
	if len(steps) != 4*4*2 {
		t.Errorf("%d curves, want 4 of each of 4 layers along 2 paths", len(steps))
	}
	for _, u := range k.units {
		if i := (id{u.Layer, u.Unit, u.Factor}); steps[i] > 0 {
			if got := float64(fires[i]) / float64(steps[i]); math.Abs(got-u.Local) > 1e-12 {
				t.Errorf("the curve of %+v fires on %v of its steps", u, got)
			}
		}
	}
}

// Rotations of pictures: the identity among the values is counted once, as the reference itself.
func TestTransformationOfANetwork(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{})
	data := shapes(t, 150)
	j := newJob(m, data, nil)
	var k kept
	j.Units, j.Transform = func(u []measure.UnitScore) error { k.units = append(k.units, u...); return nil }, turns(-20, 0, 20, 40)
	j.Curves = nil
	runJob(t, firing.Defaults(), j)
	pictures := make([]tensor.Tensor, 4*data.Len()) // by index
	index := map[int]int{}                          // places by index
	for place := range data.Len() {
		s, err := data.At(t.Context(), place, m.Frame())
		if err != nil {
			t.Fatal(err)
		}
		index[s.Index] = place
		pictures[4*s.Index] = s.Input
		for v, degrees := range []float64{-20, 20, 40} {
			moved := tensor.New(s.Input.Shape...)
			transform.Rotate{Angle: transform.Fixed(degrees)}.Draw(nil).Apply(moved, s.Input)
			pictures[4*s.Index+v+1] = moved
		}
	}
	for layer := range m.Layers() {
		z := activations(t, m, layer, pictures)
		inputs := tensor.New(data.Len(), z.Shape[1])
		for i := range data.Len() {
			copy(inputs.At(i).Data, z.At(4*i).Data)
		}
		want, err := firing.Along(firing.Responses{Inputs: inputs, Pictures: z, Steps: func(i int) []int { return []int{4 * i, 4*i + 1, 4*i + 2, 4*i + 3} }}, firing.Defaults())
		if err != nil {
			t.Fatal(err)
		}
		sameUnits(t, m.Layers()[layer].Name, rowsOf(k.units, layer, ""), want)
	}
}

// Scores do not depend on how the work is divided, nor on where it was stopped.
func TestDivisionAndResumption(t *testing.T) {
	t.Parallel()
	all := firing.Defaults()
	all.Also = []string{firing.Variance, firing.SameEquivariance, firing.NormalThreshold, firing.MutualInformation}
	t.Run("all", func(t *testing.T) { t.Parallel(); divideAndResume(t, all) })
	t.Run("sketch", func(t *testing.T) { t.Parallel(); divideAndResume(t, sketched()) })
}

// sketched has thresholds from sketches of 117 of 130 values.
func sketched() firing.Settings {
	s := firing.Defaults()
	s.Rate, s.Thresholds, s.Error = 0.9, firing.Sketched, 0.2
	return s
}

func divideAndResume(t *testing.T, s firing.Settings) {
	t.Helper()
	m := openModel(t, testmodel.Options{})
	data := shapes(t, 130)
	newOne := func(k *kept) *procedure.Job {
		j := newJob(m, data, k)
		j.Transform = turns(-30, 30)
		return j
	}
	var whole kept
	want := runJob(t, s, newOne(&whole))
	divide := func(bytes int64) *kept {
		var k kept
		j := newOne(&k)
		j.Memory = bytes
		if got := runJob(t, s, j); !same(got, want) || !same(k, whole) {
			t.Errorf("with %d bytes the scores are others", bytes)
		}
		return &k
	}
	divide(200_000)
	divide(60_000)
	method, err := firing.New(s)
	if err != nil {
		t.Fatal(err)
	}
	for stop := 1; stop < 30; stop += 4 {
		var k kept
		j := newOne(&k)
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		j.Progress = func(int64, string) {
			if calls++; calls == stop {
				cancel()
			}
		}
		_, err := method.Run(ctx, j)
		if err == nil && stop > 12 {
			break // it was done before
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped at %d: %v", stop, err)
		}
		state := j.Checkpoint
		j = newOne(&k)
		j.Checkpoint = state
		k = kept{}
		if got := runJob(t, s, j); !same(got, want) || !same(k, whole) {
			t.Errorf("stopped at %d the scores are others", stop)
		}
	}
}

// Thresholds from sketches: the rates that they give are counted, and what follows from them is what it must be.
func TestSketchedThresholds(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{})
	data := shapes(t, 130)
	var k kept
	j := newJob(m, data, &k)
	j.Transform = turns(-30, 30)
	runJob(t, sketched(), j)
	var squares float64
	for layer := range m.Layers() {
		z := activations(t, m, layer, drawn(t, data, m.Frame()))
		for _, u := range rowsOf(k.units, layer, "") {
			fires := 0
			for i := range data.Len() {
				if float64(u.Sign)*float64(z.At(i).Data[u.Unit]) >= float64(u.Sign)*u.Threshold {
					fires++
				}
			}
			if global := float64(fires) / 130; math.Abs(u.Global-global) > 1e-12 || math.Abs(u.Score-u.Local/global) > 1e-12 {
				t.Fatalf("layer %d: %+v, and it fires at %d of 130", layer, u, fires)
			}
			squares += math.Pow(u.Global/0.9-1, 2) / float64(len(k.units))
		}
	}
	if rms := math.Sqrt(squares); rms > 0.2 || rms == 0 {
		t.Errorf("rates are %v off in the root mean square", rms)
	}
}

// same compares values that may hold NaN.
func same(a, b any) bool {
	return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) || reflect.DeepEqual(a, b)
}

func TestChannelsAsUnits(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{})
	base, data := shuffledGratings(t)
	s := firing.Defaults()
	s.Positions = firing.Channels
	var k kept
	runJob(t, s, newJob(m, data, &k))
	walk := base.AlongPhase()
	z := activations(t, m, 0, drawn(t, walk, m.Frame()))
	maxima := tensor.New(walk.Len(), 6)
	for i := range maxima.Data {
		maxima.Data[i] = slices.Max(z.Data[i*64 : (i+1)*64])
	}
	s.References = 1
	want, err := firing.Along(firing.Responses{Inputs: maxima.Slice(0, base.Len()), Pictures: maxima, Steps: walk.Trajectory}, s)
	if err != nil {
		t.Fatal(err)
	}
	sameUnits(t, "channels", rowsOf(k.units, 0, "phase"), want)
}

// flat is a source of pictures that are all black.
type flat struct{ dataset.Source }

func (flat) Len() int { return 120 }

func (flat) At(_ context.Context, i int, _ dataset.Frame) (dataset.Sample, error) {
	return dataset.Sample{Index: i, Input: tensor.New(3, 16, 16), Label: dataset.NoLabel}, nil
}

func TestSilentLayers(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{})
	var k kept
	j := newJob(m, flat{}, &k)
	j.Transform = turns(90)
	for _, s := range runJob(t, firing.Defaults(), j) {
		switch {
		case s.Statistic == "selective" && s.Value != 0:
			t.Errorf("a silent layer is selective: %+v", s)
		case s.Statistic == "invariance" && (!math.IsNaN(s.Value) || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "constant")):
			t.Errorf("a silent layer scores %+v", s)
		}
	}
	for _, u := range k.units {
		if u.Score != 1 || u.Selective {
			t.Fatalf("a constant unit: %+v", u)
		}
	}
}

// nameless is a source with classes that no sample has.
type nameless struct{ dataset.Source }

func (n nameless) At(ctx context.Context, i int, f dataset.Frame) (dataset.Sample, error) {
	s, err := n.Source.At(ctx, i, f)
	s.Label = dataset.NoLabel
	return s, err
}

// Firing says nothing about classes that no input has: there is a warning in place of a score.
func TestInformationWithoutLabels(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{})
	s := firing.Defaults()
	s.Also = []string{firing.MutualInformation}
	var k kept
	j := newJob(m, nameless{shapes(t, 100)}, &k)
	j.Transform = turns(10)
	got := find(t, runJob(t, s, j), 0, "", "mutual-information")
	if !math.IsNaN(got.Value) || !math.IsNaN(got.Null) || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "two classes") {
		t.Errorf("%+v", got)
	}
	for _, u := range k.units {
		if !math.IsNaN(u.MutualInformation) {
			t.Fatalf("unit %+v", u)
		}
	}
}

func TestSkips(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{})
	method, err := firing.New(firing.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	few, bare, identity := newJob(m, shapes(t, 99), nil), newJob(m, shapes(t, 100), nil), newJob(m, shapes(t, 100), nil)
	few.Transform, identity.Transform = turns(10), turns(0)
	for want, j := range map[string]*procedure.Job{"it takes 100": few, "names no transformation": bare, "no value but the identity": identity} {
		if got := method.Skip(j); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNaNNamesTheLayer(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{Poison: float32(math.NaN())})
	j := newJob(m, shapes(t, 100), &kept{})
	j.Transform = turns(10)
	method, err := firing.New(firing.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	_, err = method.Run(t.Context(), j)
	var bad *measure.NonFinite
	if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), `layer "conv": NaN or infinity`) {
		t.Errorf("%v", err)
	}
}
