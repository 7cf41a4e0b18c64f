package dense

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
)

// TestRareClasses checks the warning of a class that is in the labels of few groups of samples. Of
// three classes the last has no labels.
func TestRareClasses(t *testing.T) {
	t.Parallel()
	const groups, classes = 10, 3
	for in, want := range map[int]string{0: "", 1: "1 of 2 classes", 4: "1 of 2 classes", 5: "", groups: ""} {
		a := &accuracyAccumulator{site: measure.Site{Layout: measure.Layout{N: 40, Groups: groups}, Output: &decoded.Format{Kind: decoded.ClassMap, Classes: classes}}}
		a.views[cleanView].regions = make([]int, groups*classes*3)
		for g := range groups {
			a.views[cleanView].regions[g*classes*3+2] = 7
			if g < in {
				a.views[cleanView].regions[(g*classes+1)*3+2] = 3
			}
		}
		if got := strings.Join(a.rareClasses(), ""); strings.Contains(got, "too narrow") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("a class in %d of %d groups: %q, want %q", in, groups, got, want)
		}
	}
}
