package docs

import (
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/catalog"
)

// TestCostOfComparisons checks that the pages of five measures, most of which compare
// representations or predictions, state in section Cost the operations that each statistic takes. A
// measure computes one or several statistics; its descriptor lists them. page returns a page's
// text.
func TestCostOfComparisons(t *testing.T) {
	t.Parallel()
	for _, d := range catalog.Descriptors() {
		if !slices.Contains([]string{"similarity", "geometry", "prediction-agreement", "stitching", "distance"}, d.Name) {
			continue
		}
		name := "reference/measures/" + d.Name + ".md"
		_, cost, _ := strings.Cut(page(t, name), "\n## Cost\n")
		cost, _, _ = strings.Cut(cost, "\n## ")
		for _, s := range d.Statistics {
			stated := slices.ContainsFunc(strings.Split(cost, "\n"), func(line string) bool {
				cells := strings.Split(line, "|")
				return len(cells) > 3 && strings.Contains(cells[1], "`"+s.Name+"`") && strings.TrimSpace(cells[2]) != ""
			})
			if !stated {
				t.Errorf("%s: no row of a table in section Cost states the operations that %s takes", name, s.Name)
			}
		}
	}
}

// TestMeasurePages checks that the page of each measure names the statistics of the measure's
// descriptor, and has every section.
func TestMeasurePages(t *testing.T) {
	t.Parallel()
	index := page(t, "reference/measures/README.md")
	for _, d := range catalog.Descriptors() {
		name := "reference/measures/" + d.Name + ".md"
		text := page(t, name)
		if !strings.HasPrefix(text, "# "+d.Name+"\n") {
			t.Errorf("%s: the title is not %q", name, d.Name)
		}
		if !strings.Contains(index, "["+d.Name+"]("+d.Name+".md)") {
			t.Errorf("the index of measures has no link to %s", name)
		}
		for _, s := range d.Statistics {
			if !strings.Contains(text, "`"+s.Name+"`") {
				t.Errorf("%s: the statistic %s is missing", name, s.Name)
			}
		}
		for _, section := range []string{"| use it | do not use it |", "## Definition", "## How to read it", "## Cost", "## Pitfalls"} {
			if !strings.Contains(text, section) {
				t.Errorf("%s: there is no %q", name, section)
			}
		}
	}
}
