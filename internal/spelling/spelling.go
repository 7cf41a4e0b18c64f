// Package spelling finds the word that was meant where one was misspelt.
package spelling

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest returns the n words, or fewer, that are nearest to a word: by the Distance of the word to
// the nearest substring of each, and then by the Distance to the whole. So words that contain it
// come first, and the shortest of these before the others. Case does not matter.
func Nearest(word string, words []string, n int) []string {
	words = slices.Clone(words)
	slices.Sort(words)
	words = slices.Compact(words)
	type distance struct{ within, whole int }
	distances := make(map[string]distance, len(words))
	word = strings.ToLower(word)
	for _, w := range words {
		lower := strings.ToLower(w)
		distances[w] = distance{within: substringDistance(word, lower), whole: Distance(word, lower)}
	}
	slices.SortStableFunc(words, func(a, b string) int {
		return cmp.Or(distances[a].within-distances[b].within, distances[a].whole-distances[b].whole)
	})
	return words[:min(n, len(words))]
}

// Distance returns the Levenshtein distance: the least number of insertions, deletions and
// replacements of bytes that turn a into b.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	fill(row, a, b)
	return row[len(b)]
}

// substringDistance returns the Distance from a to the substring of b that is nearest to it.
func substringDistance(a, b string) int {
	row := make([]int, len(b)+1)
	fill(row, a, b)
	return slices.Min(row)
}

// fill replaces a row of distances from the empty text to each prefix of b by the distances from a
// to these prefixes. From a row of zeros it gives, for each prefix, the distance from a to the
// nearest substring that ends there.
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
