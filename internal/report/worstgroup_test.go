package report

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// groupRows draws whether two models are right on samples of four cameras under three
// transformations; on the last camera they are right less often by worse.
func groupRows(g *rand.Rand, worse float64) []scores.Row {
	moved := measure.StatisticDescriptor{Name: "moved", Range: measure.ZeroToOne, Direction: measure.Higher}
	cameras := scores.Grouping{Column: "camera", Groups: []string{"a", "b", "c", "d"}, Of: map[int]int{}}
	const samples = 400
	for i := range samples {
		cameras.Of[i] = i % 4
	}
	var rows []scores.Row
	for _, model := range []string{"m", "k"} {
		for _, transform := range []string{"turn", "gray", "fog"} {
			values := map[int]float64{}
			for i := range samples {
				right := 0.7
				if cameras.Of[i] == 3 && transform == "fog" {
					right -= worse
				}
				if g.Float64() < right {
					values[i] = 1
				} else {
					values[i] = 0
				}
			}
			row := predictionRow(model, transform, "accuracy", "moved", 0.7, 0.05)
			rows = append(append(rows, row), scores.GroupRows(row, values, moved, cameras)...)
		}
	}
	return rows
}

// TestWorstGroup checks the sentence on the worst group: with equal groups it names one in at most
// 5 % of draws.
func TestWorstGroup(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(11, 1))
	rec := scores.Record{Measures: reporttest.Measures()}
	sentence := func(worse float64) string {
		rows := groupRows(g, worse)
		return withClaims(nil, func(c *claims) Sentence { return worstGroup(rows, rec, c, nil) }).String()
	}
	named := 0
	const draws = 200
	for range draws {
		if text := sentence(0); strings.HasPrefix(text, "The worst group") {
			named++
		} else if text != "No group of camera is clearly worse than the other samples." {
			t.Fatalf("%q", text)
		}
	}
	if named > draws/20 {
		t.Errorf("%d of %d draws of equal groups have a worst one", named, draws)
	}
	if text := sentence(0.4); !strings.HasPrefix(text, "The worst group is camera d: ") || !strings.Contains(text, "under fog, 0.") || !strings.Contains(text, "below the other samples") {
		t.Errorf("%q", text)
	}
	if s := withClaims(nil, func(c *claims) Sentence {
		return worstGroup([]scores.Row{predictionRow("m", "turn", "accuracy", "moved", 0.7, 0.05)}, rec, c, nil)
	}); s != nil {
		t.Errorf("without groups: %q", s)
	}
	for _, model := range []string{"m", "k"} {
		judged := []string{model}
		rows := groupRows(g, 0.4)
		if text := withClaims(nil, func(c *claims) Sentence { return worstGroup(rows, rec, c, judged) }).String(); !strings.HasPrefix(text, "The worst group is camera d: "+model+" has ") {
			t.Errorf("judged is %s: %q", model, text)
		}
	}
	found, _ := Conclusions(groupRows(g, 0.4), rec, nil)
	for _, s := range found {
		if strings.Contains(s.String(), "camera d") {
			return
		}
	}
	t.Error("the first screen lacks the worst group")
}

// TestLostGroups checks the sentence on classes that the second of two models has right less often:
// of equal models it names one in at most 5 % of draws.
func TestLostGroups(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(12, 1))
	about := measure.StatisticDescriptor{Name: "accuracy-difference", Range: measure.MinusOneToOne, Direction: measure.Higher}
	labels := scores.Grouping{Column: "label", Groups: []string{"cat", "dog", "fox", "owl", "rat"}, Of: map[int]int{}}
	const samples = 1000
	for i := range samples {
		labels.Of[i] = i % 5
	}
	sentence := func(worse float64, judged ...string) string {
		var rows []scores.Row
		for _, transform := range []string{"", "fog", "tilt"} {
			values := map[int]float64{}
			for i := range samples {
				u := g.Float64()
				switch p := 0.05; {
				case u < p:
					values[i] = 1
				case u < 2*p || labels.Of[i] == 1 && transform != "" && u < 2*p+worse:
					values[i] = -1
				default:
					values[i] = 0
				}
			}
			row := predictionRow("float", transform, "prediction-agreement", "accuracy-difference", 0, 0.01)
			row.OtherModel = "int8"
			rows = append(append(rows, row), scores.GroupRows(row, values, about, labels)...)
		}
		return withClaims(nil, func(c *claims) Sentence { return lostGroups(rows, c, judged) }).String()
	}
	named := 0
	const draws = 200
	for range draws {
		if text := sentence(0); text != "In no group of label is int8 clearly right less often than float." {
			named++
		}
	}
	if named > draws/20 {
		t.Errorf("%d of %d draws of equal models lose a class", named, draws)
	}
	if text := sentence(0.3, "int8"); !strings.HasPrefix(text, "int8 is right less often than float for label dog under ") || strings.Count(text, "dog") != 1 || !strings.HasSuffix(text, "), which is more than chance.") {
		t.Errorf("%q", text)
	}
	if text := sentence(0.3, "pruned"); text != "" {
		t.Errorf("of another model: %q", text)
	}
}

// TestCleanAgreement checks what stands beside the scores of models on data without labels.
func TestCleanAgreement(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	for i, model := range []string{"float", "int8", "pruned"} {
		rows = append(rows, predictionRow(model, "turn", "effective-invariance", "ei", 0.6+0.1*float64(i), 0.01))
		if i > 0 {
			r := predictionRow("float", "", "prediction-agreement", "disagreement", 0.03*float64(i), 0.01)
			r.OtherModel = model
			rows = append(rows, r)
		}
	}
	m := Matrices(rows, reporttest.Measures())[0]
	if got, want := fmt.Sprintf("%s %q", m.CleanName, m.Clean), `agreement with float ["" "0.970 [0.960, 0.980]" "0.940 [0.930, 0.950]"]`; got != want {
		t.Errorf("beside the scores stands %s, want %s", got, want)
	}
}
