package firing_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure/firing"
	"github.com/noether-ml/noether/measure/procedure"
)

// Scores do not depend on how the work is divided into groups, nor on interruptions.
func TestDivisionAndResume(t *testing.T) {
	t.Parallel()
	all := firing.Defaults()
	all.Also = []string{firing.Variance, firing.SameEquivariance, firing.NormalThreshold, firing.MutualInformation}
	t.Run("all", func(t *testing.T) { t.Parallel(); divideAndResume(t, all) })
	t.Run("sketch", func(t *testing.T) { t.Parallel(); divideAndResume(t, sketched()) })
}

// sketched returns settings with thresholds from sketches of 117 of 130 values.
func sketched() firing.Settings {
	s := firing.Defaults()
	s.Rate, s.Thresholds, s.Error = 0.9, firing.Sketched, 0.2
	return s
}

func divideAndResume(t *testing.T, s firing.Settings) {
	t.Helper()
	m := openModel(t, testmodel.Options{})
	data := shapes(t, 130)
	newOne := func(k *recorder) *procedure.Job {
		j := newJob(m, data, k)
		j.Transform = turns(-30, 30)
		return j
	}
	var whole recorder
	want := runJob(t, s, newOne(&whole))
	divide := func(bytes int64) *recorder {
		var k recorder
		j := newOne(&k)
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
			break // the run had ended before
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped at %d: error %v, want context.Canceled", stop, err)
		}
		state := j.Checkpoint
		j = newOne(&k)
		j.Checkpoint = state
		k = recorder{}
		if got := runJob(t, s, j); !same(got, want) || !same(k, whole) {
			t.Errorf("stopped at %d and resumed: the scores differ from those of an uninterrupted run", stop)
		}
	}
}

// With thresholds from sketches, global rates are exact counts, and scores follow from them.
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
		t.Errorf("rates differ by %v in the root mean square, want at most 0.2, and more than 0", rms)
	}
}
