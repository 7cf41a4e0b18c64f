package docs

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/study/spec"
)

// TestMeasurePages holds the page of each measure to its descriptor: its statistics are named, and it has every section.
func TestMeasurePages(t *testing.T) {
	t.Parallel()
	index := page(t, "reference/measures/README.md")
	for _, d := range spec.Descriptors() {
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
