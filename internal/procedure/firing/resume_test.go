package firing_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/procedure/firing"
	"github.com/noether-ml/noether/internal/testmodel"
)

// TestDivisionAndResume checks that scores depend neither on the groups of units (values of layers)
// into which a bound on memory divides the work, nor on interruptions.
func TestDivisionAndResume(t *testing.T) {
	t.Parallel()
	all := firing.Defaults()
	all.Also = []string{firing.Variance, firing.SameEquivariance, firing.NormalThreshold, firing.MutualInformation}
	t.Run("additional statistics", func(t *testing.T) { t.Parallel(); divideAndResume(t, all) })
	t.Run("sketched thresholds", func(t *testing.T) { t.Parallel(); divideAndResume(t, sketched()) })
}

// sketched returns settings with thresholds from quantile sketches. Units shall fire at 117 of 130
// inputs.
func sketched() firing.Settings {
	s := firing.Defaults()
	s.Rate, s.Thresholds, s.Error = 0.9, firing.Sketched, 0.2
	return s
}

// divideAndResume compares jobs under bounds on memory, and jobs that are stopped and resumed, with
// an uninterrupted job without such a bound. A job is one run of the measure on a model and its
// data, here 130 images that are rotated by -30 and 30 degrees. A recorder holds the scores of
// units that it reports.
func divideAndResume(t *testing.T, s firing.Settings) {
	t.Helper()
	m := openModel(t, testmodel.Options{})
	data := shapes(t, 130)
	rotationJob := func(k *recorder) *procedure.Job {
		j := newJob(m, data, k)
		j.Transform = turns(-30, 30)
		return j
	}
	var whole recorder
	want := runJob(t, s, rotationJob(&whole))
	divide := func(bytes int64) *recorder {
		var k recorder
		j := rotationJob(&k)
		j.Memory = bytes
		if got := runJob(t, s, j); !same(got, want) || !same(k, whole) {
			t.Errorf("within %d bytes the scores differ from those without a bound", bytes)
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
		var k recorder
		j := rotationJob(&k)
		ctx, cancel := context.WithCancel(t.Context())
		reports := 0
		j.Progress = func(int64, string) {
			if reports++; reports == stop {
				cancel()
			}
		}
		_, err := method.Run(ctx, j)
		if err == nil && stop > 12 {
			break // the job has fewer progress reports than stop
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped at progress report %d: error %v, want context.Canceled", stop, err)
		}
		state := j.Checkpoint
		j = rotationJob(&k)
		j.Checkpoint = state
		k = recorder{}
		if got := runJob(t, s, j); !same(got, want) || !same(k, whole) {
			t.Errorf("stopped at progress report %d and resumed: the scores differ from those of an uninterrupted run", stop)
		}
	}
}

// TestSketchedThresholds checks that with thresholds from sketches, global firing rates (over all
// inputs) are exact counts, scores are the ratios of local rates (over rotated versions of the
// inputs that activate a unit most) and global ones, and global rates are near the setting, 0.9,
// with the relative error that sketched allows, 0.2.
func TestSketchedThresholds(t *testing.T) {
	t.Parallel()
	m := openModel(t, testmodel.Options{})
	data := shapes(t, 130)
	var k recorder
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
				t.Fatalf("layer %d: %+v, and the unit fires at %d of 130 inputs", layer, u, fires)
			}
			squares += math.Pow(u.Global/0.9-1, 2) / float64(len(k.units))
		}
	}
	if rms := math.Sqrt(squares); rms > 0.2 || rms == 0 {
		t.Errorf("global rates have the relative root mean square error %v, want at most 0.2, and more than 0", rms)
	}
}
