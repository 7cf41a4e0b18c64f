package report

import (
	"fmt"
	"testing"
)

// TestEachKindOfChart shows every kind of every measure in turn, and looks for marks, a title and a sentence.
func TestEachKindOfChart(t *testing.T) {
	t.Parallel()
	v := openAt(t, everything(t), 1280, 900, "")
	seen := map[string]bool{}
	for m := range evaluate[int](t, v, `document.querySelectorAll("section.measure").length`) {
		section := fmt.Sprintf("section.measure[data-measure='%d'] ", m)
		kinds := evaluate[[]string](t, v, fmt.Sprintf("[...document.querySelectorAll(%q)].map(i => i.value)", section+".segments:first-child input"))
		for _, kind := range kinds {
			seen[kind] = true
			v.do(t, script(fmt.Sprintf("document.querySelector(%q)?.click()", section+".segments input[value="+kind+"]")),
				until("document.documentElement.dataset.complete === 'true'"))
			figures := evaluate[int](t, v, fmt.Sprintf("document.querySelectorAll(%q).length", section+"figure"))
			said := evaluate[int](t, v, fmt.Sprintf(`[...document.querySelectorAll(%q)].filter(f => f.querySelector(".says").textContent.length > 40 && f.querySelector("figcaption span").textContent && f.querySelectorAll(".role-mark path, .role-mark text").length > 2).length`, section+"figure"))
			if figures == 0 || said != figures {
				t.Errorf("measure %d, %s: %d of %d figures have marks, a title and a sentence", m, kind, said, figures)
			}
		}
	}
	for _, kind := range []string{"depth", "bars", "parameter", "heat", "distribution"} {
		if !seen[kind] {
			t.Errorf("no chart of kind %s", kind)
		}
	}
	if n := evaluate[int](t, v, `document.querySelectorAll("#relations .mark-symbol path").length`); n != 6 {
		t.Errorf("%d points against accuracy, not 6", n)
	}
	v.do(t, script(`document.querySelector("#pictures img").scrollIntoView()`), until(`document.querySelector("#pictures img").naturalWidth === 64`))
	if n := evaluate[int](t, v, `document.documentElement.scrollWidth - innerWidth`); n > 0 {
		t.Errorf("the page is %d pixels wider than the window", n)
	}
	v.quiet(t)
}
