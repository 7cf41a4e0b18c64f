package scores

import (
	"strings"
	"testing"
)

// TestFilter checks how many rows filters keep, and the errors of filters that keep none.
func TestFilter(t *testing.T) {
	t.Parallel()
	var rows []Row // of two models, each with three layers and one score of the whole model
	for _, model := range []string{"small", "large"} {
		for _, layer := range []string{"/a/relu0", "/a/relu1", "/b/relu2"} {
			rows = append(rows, Row{Model: model, Layer: layer, Transform: "gray", Measure: "seis", Statistic: "equivariance"})
		}
		rows = append(rows, Row{Model: model, Transform: "tilt", Measure: "effective-invariance", Statistic: "ei"})
	}
	for _, c := range []struct {
		filter Filter
		want   int
	}{
		{Filter{}, 8},
		{Filter{Model: []string{"small"}}, 4},
		{Filter{Model: []string{"sm*"}, Layer: []string{"/*/relu[01]"}}, 2},
		{Filter{Layer: []string{"*relu*"}}, 6},
		{Filter{Statistic: []string{"ei", "equivariance"}}, 8},
	} {
		if got, err := c.filter.Rows(rows); err != nil || len(got) != c.want {
			t.Errorf("%+v keeps %d rows, error %v; want %d", c.filter, len(got), err, c.want)
		}
	}
	for want, f := range map[string]Filter{
		`no score has the model "tiny"; available: small, large`: {Model: []string{"tiny"}},
		"invalid layer pattern":                                  {Layer: []string{"[0-"}},
		"no score matches all filters":                           {Transform: []string{"gray"}, Statistic: []string{"ei"}},
	} {
		if _, err := f.Rows(rows); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one with %q", f, err, want)
		}
	}
}
