package report

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/dense"
	"github.com/noether-ml/noether/scores"
)

// TestAlarms checks that what changes the meaning of scores is the first sentence, and that nothing
// is concluded or recommended from such models. Each model has scores under two transformations.
func TestAlarms(t *testing.T) {
	t.Parallel()
	run := func(warnings map[string]string) []scores.Row {
		var rows []scores.Row
		for i, model := range []string{"m", "k"} {
			clean := predictionRow(model, "turn", "accuracy", "clean", 0.27, 0.04)
			clean.Warning = warnings[model]
			rows = append(rows, clean)
			for j, transform := range []string{"turn", "gray"} {
				rows = append(rows, predictionRow(model, transform, "effective-invariance", "ei", 0.6+0.2*float64(i)+0.1*float64(j), 0.01))
			}
		}
		return rows
	}
	const alone = "Effective invariance is lowest under turn (0.600) and highest under gray (0.700)."
	for name, c := range map[string]struct {
		warnings map[string]string
		stated   float64 // accuracy that the file of k states
		want     []string
	}{
		"no alarm": {nil, 0.3, []string{"Without a transformation, the accuracy of k and m differs by no more than chance: 0.270 [0.230, 0.310] and 0.270", "k is more robust", "Effective invariance is lowest under turn (0.600 to 0.800)"}},
		"untrained": {map[string]string{"m": measure.GuessWarning + " among 4 classes", "k": "few; " + measure.ConstantWarning}, 0, []string{
			"m: accuracy is 0.270 [0.230, 0.310] without a transformation: no better than a guess among 4 classes. Its scores say little, and it is left out",
			"k: accuracy is 0.270 [0.230, 0.310] without a transformation: the predictions hardly vary."}},
		"forgotten normalisation": {map[string]string{"k": measure.OverconfidentWarning + " (0.78 on average)"}, 0,
			[]string{"k: accuracy is 0.270 [0.230, 0.310] without a transformation: right far less often than confident (0.78", alone}},
		"far below its card": {nil, 0.8, []string{"k: accuracy is 0.270 [0.230, 0.310] without a transformation, and 0.800 by its card: check preprocess", alone}},
	} {
		rec := scores.Record{Measures: reporttest.Measures(), Models: []scores.ModelRecord{{Name: "m"}, {Name: "k"}}}
		if c.stated > 0 {
			rec.Models[1].Stated = &scores.StatedAccuracy{Accuracy: c.stated, By: "its card"}
		}
		var got []string
		found, _ := Conclusions(run(c.warnings), rec, nil)
		for _, s := range found {
			got = append(got, s.String())
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", name, got[i], c.want[i])
			}
		}
	}
}

// TestNothingIsRecommendedOfUntrainedModels checks that the sentence of SEIS that recommends layers
// leaves out models with an alarm.
func TestNothingIsRecommendedOfUntrainedModels(t *testing.T) {
	t.Parallel()
	run, rec := reporttest.FakeRun{Models: 1, Layers: 6, Transforms: 2}.Rows()
	recommended := func(rows []scores.Row) (n int) {
		for _, s := range Sections(rows, rec.Measures) {
			if SectionNote(s, Sound(rows, rec)) != nil {
				n++
			}
		}
		return n
	}
	if recommended(run) == 0 {
		t.Fatal("the run has no recommendation")
	}
	for i := range run {
		if cleanName(&run[i]) == "accuracy" {
			run[i].Warning = measure.GuessWarning + " among 10 classes"
		}
	}
	if n := recommended(run); n != 0 {
		t.Errorf("%d recommendations of a model that is no better than a guess", n)
	}
}

// TestAccuracyBesideScores checks that a matrix has the accuracy of each model.
func TestAccuracyBesideScores(t *testing.T) {
	t.Parallel()
	rows := []scores.Row{predictionRow("m", "turn", "effective-invariance", "ei", 0.6, 0.01), predictionRow("k", "turn", "effective-invariance", "ei", 0.7, 0.01),
		predictionRow("k", "turn", "accuracy", "clean", 0.9, 0.01)}
	m := Matrices(rows, reporttest.Measures())[0]
	if len(m.Clean) != 2 || m.Clean[0] != "" || m.Clean[1] != "0.900 [0.890, 0.910]" {
		t.Errorf("the accuracies are %q, want none and 0.900", m.Clean)
	}
}

// TestDenseAccuracyBesideScores checks that a matrix of a detector or segmenter has its mAP or mean
// IoU, and that one that is no better than a guess is an alarm.
func TestDenseAccuracyBesideScores(t *testing.T) {
	t.Parallel()
	for statistic, name := range map[string]string{"clean-map": "mAP", "clean-miou": "mean IoU"} {
		rows := []scores.Row{predictionRow("m", "turn", "effective-invariance", "ei", 0.6, 0.01), predictionRow("m", "turn", "dense-accuracy", statistic, 0.01, 0.005)}
		m := Matrices(rows, reporttest.Measures())[0]
		if m.CleanName != name || len(m.Clean) != 1 || m.Clean[0] != "0.010 [0.005, 0.015]" {
			t.Errorf("%s %q stands beside the scores", m.CleanName, m.Clean)
		}
		rows[1].Warning = measure.GuessWarning
		if got := Alarms(rows, scores.Record{}); len(got) != 1 || !strings.HasPrefix(got[0].String(), "m: "+name+" is 0.010 [0.005, 0.015] without a transformation: no better than a guess") {
			t.Errorf("alarms: %v", got)
		}
	}
}

// TestDetectorsAreComparedByLabels checks the first screen of two detectors whose boxes are equally
// stable, of which one has wrong classes: it begins with the mAP.
func TestDetectorsAreComparedByLabels(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	for model, right := range map[string]float64{"float": 0.9, "int8": 0.5} {
		matched := predictionRow(model, "turn", "dense-equivariance", "matched", 0.95, 0.01)
		matched.Null = 0.1
		rows = append(rows, matched, predictionRow(model, "turn", "dense-accuracy", "clean-map", right, 0.02), predictionRow(model, "turn", "dense-accuracy", "moved-map", right-0.1, 0.02))
	}
	rec := scores.Record{Measures: []measure.Descriptor{dense.Descriptor(), dense.AccuracyDescriptor()}}
	if m := Matrices(rows, rec.Measures); m[0].Statistic != "moved-map" || m[0].CleanName != "mAP" {
		t.Errorf("the report begins with %s and %s", m[0].Statistic, m[0].CleanName)
	}
	got, _ := Conclusions(rows, rec, nil)
	for i, want := range []string{
		"Without a transformation, int8 has a lower mAP than float, by more than chance: 0.500 [0.480, 0.520] against 0.900 [0.880, 0.920]",
		"float is more accurate than the other model under turn (0.800; next: int8, 0.400)",
	} {
		if i >= len(got) || !strings.HasPrefix(got[i].String(), want) {
			t.Errorf("sentence %d: %v, want %q", i, got, want)
		}
	}
}
