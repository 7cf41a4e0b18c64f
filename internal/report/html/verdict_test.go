package html

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/policy"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
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
