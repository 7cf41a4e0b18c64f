package einsum

import (
	"slices"
	"testing"
)

// TestRead checks the indices of the operands and of the result. Axes that an ellipsis stands for
// get the last letters of the alphabet that the equation does not use. Without an arrow, the result
// has the axes of the ellipsis, then the indices that occur once, in alphabetical order.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		equation string
		ranks    []int
		terms    []string
		result   string
	}{
		{"ij,jk->ik", []int{2, 2}, []string{"ij", "jk"}, "ik"},
		{"ij , kj", []int{2, 2}, []string{"ij", "kj"}, "ik"},
		{"ba", []int{2}, []string{"ba"}, "ab"},
		{"ii", []int{2}, []string{"ii"}, ""},
		{"...i,j...->...", []int{3, 2}, []string{"yzi", "jz"}, "yz"},
		{"z...,...a", []int{1, 3}, []string{"z", "xya"}, "xyaz"},
		{",i->i", []int{0, 1}, []string{"", "i"}, "i"},
	} {
		terms, result, err := Read(c.equation, c.ranks)
		if err != nil || !slices.Equal(terms, c.terms) || result != c.result {
			t.Errorf("%s: %q -> %q, %v; want %q -> %q", c.equation, terms, result, err, c.terms, c.result)
		}
	}
	for equation, ranks := range map[string][]int{"ij->i": {3}, "i,j": {1}, "...ij->i": {1}} {
		if terms, result, err := Read(equation, ranks); err == nil {
			t.Errorf("%s of %v: %q -> %q", equation, ranks, terms, result)
		}
	}
}
