// Package words finds the word that was meant where one was misspelt.
package words

import "slices"

// Distance is Levenshtein's: the least number of insertions, deletions and replacements, of bytes, that turn a into b.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	fill(row, a, b)
	return row[len(b)]
}

// Within is the Distance from a to that part of b which is nearest to it.
func Within(a, b string) int {
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
