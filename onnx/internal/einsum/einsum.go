// Package einsum reads the equations of the operator Einsum:
//
//	Read("bij,bjk->bik", []int{3, 3}) // a batch of matrix products: "bij" and "bjk" to "bik"
package einsum

import (
	"fmt"
	"slices"
	"strings"
)

// letters are the possible names of an index.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Read returns the indices of each operand and of the result, one letter per axis; an ellipsis
// becomes unused letters. ranks are the operands' numbers of axes. The error follows the name of a
// node.
func Read(equation string, ranks []int) (terms []string, result string, err error) {
	left, result, explicit := strings.Cut(strings.ReplaceAll(equation, " ", ""), "->")
	terms = strings.Split(left, ",")
	if len(terms) != len(ranks) {
		return nil, "", fmt.Errorf("its equation %q has %d terms for %d operands", equation, len(terms), len(ranks))
	}
	free := Free(terms...)
	if !explicit {
		result = implied(terms)
	}
	longest := 0 // axes of the longest ellipsis
	for i, term := range terms {
		// Axes that an ellipsis stands for.
		elided := ranks[i] - len(strings.Replace(term, "...", "", 1))
		if elided < 0 || elided > len(free) || elided > 0 && !strings.Contains(term, "...") {
			return nil, "", fmt.Errorf("its equation %q does not fit operand %d, which has %d axes", equation, i, ranks[i])
		}
		longest = max(longest, elided)
		terms[i] = strings.Replace(term, "...", free[len(free)-elided:], 1)
	}
	return terms, strings.Replace(result, "...", free[len(free)-longest:], 1), nil
}

// Free returns the letters that no term uses.
func Free(terms ...string) string {
	used := strings.Join(terms, "")
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(used, r) {
			return -1
		}
		return r
	}, letters)
}

// implied returns the result of an equation without an arrow: the ellipsis, then the indices that
// occur once, in order.
func implied(terms []string) string {
	all := strings.ReplaceAll(strings.Join(terms, ""), "...", "")
	var once []rune
	for _, letter := range all {
		if strings.Count(all, string(letter)) == 1 {
			once = append(once, letter)
		}
	}
	slices.Sort(once)
	if strings.Contains(strings.Join(terms, ""), "...") {
		return "..." + string(once)
	}
	return string(once)
}
