package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/report/figure"
	"github.com/noether-ml/noether/internal/study/spec"
)

// The tests below check the steps of the recipes of docs/CONTRIBUTING.md, which say how to add a
// measure, a kind of data or a chart, that no other test checks. packages returns the packages of
// the module by folder, and page the text of a page.

// A measure is registered if package internal/catalog imports its package.
func TestPackagesOfMeasuresAreRegistered(t *testing.T) {
	t.Parallel()
	all := packages(t)
	// Packages that hold no measure.
	helpers := []string{"measure/decoded", "measure/resample", "measure/paired", "measure/measuretest"}
	for name := range all {
		if !strings.HasPrefix(name, "measure/") || strings.Contains(name, "/internal") || slices.Contains(helpers, name) {
			continue
		}
		if !slices.Contains(all["internal/catalog"].imports, name) {
			t.Errorf("package %s has no line in Measures, internal/catalog/catalog.go", name)
		}
	}
}

func TestTableOfMeasures(t *testing.T) {
	t.Parallel()
	text := page(t, "reference/study-file.md")
	for _, d := range catalog.Descriptors() {
		if link := "[`" + d.Name + "`](measures/" + d.Name + ".md)"; !strings.Contains(text, link) {
			t.Errorf("reference/study-file.md: the table of measures has no %s", link)
		}
	}
}

func TestTableOfData(t *testing.T) {
	t.Parallel()
	var first []string // the first column of the table of kinds of data
	for _, m := range regexp.MustCompile(`(?m)^\| \[([^]]+)\]\(.*\|$`).FindAllStringSubmatch(page(t, "reference/data.md"), -1) {
		first = append(first, strings.Split(m[1], ", ")...)
	}
	for _, k := range append(catalog.Data(), spec.DataKind{Name: "join"}) {
		if !slices.Contains(first, "`"+k.Name+"`") {
			t.Errorf("reference/data.md: the table of kinds has no row of %s", k.Name)
		}
	}
}

func TestTableOfCharts(t *testing.T) {
	t.Parallel()
	text := page(t, "reference/figures.md")
	_, plot, _ := strings.Cut(page(t, "reference/command.md"), "\n## plot\n")
	plot, _, _ = strings.Cut(plot, "\n## ")
	for _, c := range figure.Charts {
		if !strings.Contains(text, "\n| `"+string(c)+"`") {
			t.Errorf("reference/figures.md: the table of charts has no row of %s", c)
		}
		if !strings.Contains(plot, "`"+string(c)+"`") {
			t.Errorf("reference/command.md: the section plot does not name the chart %s", c)
		}
	}
}
