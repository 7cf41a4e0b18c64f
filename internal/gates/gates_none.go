//go:build !(cgo && amd64)

package gates

const available = false

func pass(hits []Hit, r Rows, gate []float32) int { return passPlainly(hits, r, gate) }

func count(sum []int32, r Rows, gate []float32) { countPlainly(sum, r, gate) }

func finite(values []float32) bool { return finitePlainly(values) }

func enter([]Hit, int, Rows, *Waiting, []Hit, int) (at, strongs int) {
	panic("gates: no Enter for this processor")
}
