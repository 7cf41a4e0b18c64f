package scores_test

import (
	"testing"

	"github.com/noether-ml/noether/scores"
)

// TestWithoutFormulas checks that an apostrophe is written before texts that a spreadsheet would
// take for formulas, such as those that begin with =, @, + or -, except numbers.
func TestWithoutFormulas(t *testing.T) {
	t.Parallel()
	rows := []scores.Row{{Study: "s", Model: `=HYPERLINK("http://x")`, Layer: "@sum", Data: "+cmd", Factor: "-2+3", Parameter: "-15", OtherLayer: "a=b"}}
	got := scores.WithoutFormulas(rows)[0]
	if got.Model != `'=HYPERLINK("http://x")` || got.Layer != "'@sum" || got.Data != "'+cmd" || got.Factor != "'-2+3" {
		t.Errorf("the row is %+v, want an apostrophe before each text that looks like a formula", got)
	}
	if got.Parameter != "-15" || got.OtherLayer != "a=b" || got.Study != "s" || rows[0].Layer != "@sum" {
		t.Errorf("the row is %+v, want the other texts and the original row, %+v, unchanged", got, rows[0])
	}
}
