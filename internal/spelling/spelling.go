// Package spelling finds the word that was meant where one was misspelt.
package spelling

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest are up to n of the words, those nearest to one that was not found: the ones that contain it, or nearly, come first,
// the shortest of these before the others. Case does not matter.
func Nearest(word string, words []string, n int) []string {
	words = slices.Clone(words)
	slices.Sort(words)
	words = slices.Compact(words)
	type distance struct{ within, whole int }
	distances := make(map[string]distance, len(words))
	word = strings.ToLower(word)
	for _, w := range words {
		lower := strings.ToLower(w)
		distances[w] = distance{within: SubstringDistance(word, lower), whole: Distance(word, lower)}
	}
	slices.SortStableFunc(words, func(a, b string) int {
		return cmp.Or(distances[a].within-distances[b].within, distances[a].whole-distances[b].whole)
	})
	return words[:min(n, len(words))]
}

// Distance is Levenshtein's: the least number of insertions, deletions and replacements, of bytes, that turn a into b.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	fill(row, a, b)
	return row[len(b)]
}

// SubstringDistance is the Distance from a to that part of b which is nearest to it.
func SubstringDistance(a, b string) int {
	row := make([]int, len(b)+1)
	fill(row, a, b)
	return slices.Min(row)
}

// fill takes the row of distances from nothing to the prefixes of b to that from a to them.
func fill(row []int, a, b string) {
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
}
