package html

import (
	"math"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/policy"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// TestVerdict checks that the verdict of a policy comes before all scores, with the claims that
// decide it, and that its texts are escaped.
func TestVerdict(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 2, Transforms: 2, Layers: 2}.Rows()
	claim := func(state policy.State, text string) policy.ClaimSummary {
		return policy.ClaimSummary{State: state, Text: text, Where: "street, fog=3", Evidence: "0.03 [0.01, 0.05], n = 200"}
	}
	s := &policy.Summary{Use: "street <cameras>", Models: []policy.ModelSummary{{Model: "int8", State: policy.Undecided, HoldsUpTo: map[string]float64{"fog": 1},
		Claims: []policy.ClaimSummary{claim(policy.Undecided, "loss <= 0.02"), claim(policy.Pass, "loss of <script> <= 0.02")}}}}
	page := renderRun(t, Run{Rows: rows, Record: rec, Attachments: report.Attachments{Verdict: s}})
	if !strings.Contains(renderRun(t, Run{Rows: rows, Record: rec}), `id="summary"`) || strings.Contains(renderRun(t, Run{Rows: rows, Record: rec}), `id="verdict"`) {
		t.Error("a run without a policy has a verdict")
	}
	at := 0
	for _, want := range []string{`href="#verdict"`, "street &lt;cameras&gt;", `class="judged not-enough-data"`, "int8: not enough data", "1 of 2 claims hold, 1 undecided. All hold up to fog 1.",
		"<b>not enough data</b>: loss &lt;= 0.02 (street, fog=3): 0.03 [0.01, 0.05], n = 200", "loss of &lt;script&gt;", `id="summary"`} {
		i := strings.Index(page[at:], want)
		if i < 0 {
			t.Fatalf("the page lacks %q after position %d", want, at)
		}
		at += i
	}
}

// TestLosses checks the charts of a verdict: a figure for each transformation with several values,
// with a curve of each model and the losses of all samples and of the worst group.
func TestLosses(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	var claims []policy.ClaimSummary
	for _, transform := range []string{"fog", "tilt", "gray"} {
		for _, parameter := range []string{"10", "5", "7.5, between 5 and 10"} {
			if transform == "gray" && parameter != "5" {
				continue // a single value is no curve
			}
			for i, model := range []string{"float", "int8"} {
				if !strings.Contains(parameter, ",") {
					v := 0.8 - 0.1*float64(i)
					rows = append(rows, scores.Row{Model: model, Data: "street", Transform: transform, Parameter: parameter, Measure: "accuracy", Statistic: "moved", Value: v, Low: v - 0.02, High: v + 0.02, Null: math.NaN(), N: 200})
				}
			}
			for group, v := range map[string]float64{"": 0.1, "camera=<a>": 0.05, "camera=b": 0.2} {
				claims = append(claims, policy.ClaimSummary{State: policy.Fail, Text: policy.LossOf + "accuracy.moved against float <= 0.02", Data: "street", Transform: transform,
					Parameter: parameter, Group: group, Value: new(policy.Number(v)), Low: new(policy.Number(v - 0.03)), High: new(policy.Number(v + 0.03)), Limit: new(policy.Number(0.02)), N: 200})
			}
		}
	}
	claims = append(claims, policy.ClaimSummary{State: policy.Undecided, Text: "accuracy.moved", Data: "street", Transform: "tilt", Why: "not tried"})
	s := &policy.Summary{Use: "street", Reference: "float", Score: "accuracy.moved", Models: []policy.ModelSummary{{Model: "int8", State: policy.Fail, Claims: claims}}}
	page := renderRun(t, Run{Rows: rows, Record: scores.Record{Study: "s", Transforms: []scores.TransformRecord{{Name: "tilt", Parameter: "angle (degrees)"}}}, Attachments: report.Attachments{Verdict: s}})
	_, shown, _ := strings.Cut(page, `<div class="losses">`)
	shown, _, _ = strings.Cut(shown, "</div>")
	for want, n := range map[string]int{"<figure": 2, "<polyline": 8, "<circle": 2 * (2 + 2*2 + 2*3), "angle (degrees)": 1, `class="limit"`: 2, "dashed, of camera=b; red: the limit, 0.020": 4, "%!": 0} {
		if got := strings.Count(shown, want); got != n {
			t.Errorf("the charts have %q %d times, want %d", want, got, n)
		}
	}
}
