// Package gates compares many values with a bound for each, which few of them pass, and puts those that do where they wait to be sorted.
//
// A gate j lets a value v pass where Sign v >= gate[j]. Rows of values are held against one list of gates, value by value. NaN passes nowhere.
//
// There are loops for processors with AVX2, where cgo is enabled, and loops in Go for others.
package gates

import "math"

// Rows are n rows of values, each with a value for every gate: row i from Data[i Stride] on.
type Rows struct {
	Data   []float32
	Stride int
	N      int
	Sign   float32 // 1 or -1
}

// MostRows and MostColumns are how large rows may be for Pass.
const (
	MostRows    = 1 << 15
	MostColumns = 1 << 16
)

// A Hit is where a value passes.
type Hit uint32

// Row is that of the value.
func (h Hit) Row() int { return int(h >> 16) }

// Column is that of the value, and of its gate.
func (h Hit) Column() int { return int(h & 0xffff) }

// Value is the value of a hit, with the sign.
func (r Rows) Value(h Hit) float32 { return r.Sign * r.Data[h.Row()*r.Stride+h.Column()] }

// Pass puts where values pass into hits, row after row, and returns how many there are. There is room for all of them.
func Pass(hits []Hit, r Rows, gate []float32) int {
	check(r, gate)
	if len(hits) < r.N*len(gate) || r.N > MostRows || len(gate) > MostColumns {
		panic("gates: too many values, or too little room")
	}
	if r.N == 0 || len(gate) == 0 {
		return 0
	}
	return pass(hits, r, gate)
}

// Count adds to each sum in how many rows its gate is passed.
func Count(sum []int32, r Rows, gate []float32) {
	check(r, gate)
	if len(sum) != len(gate) {
		panic("gates: sums for other gates")
	}
	if r.N > 0 && len(gate) > 0 {
		count(sum, r, gate)
	}
}

// Finite reports whether no value is NaN or infinite.
func Finite(values []float32) bool { return len(values) == 0 || finite(values) }

func check(r Rows, gate []float32) {
	if r.N > 0 && len(r.Data) < (r.N-1)*r.Stride+len(gate) {
		panic("gates: rows of another length")
	}
}

func passPlainly(hits []Hit, r Rows, gate []float32) int {
	n := 0
	for i := range r.N {
		for j, v := range r.Data[i*r.Stride:][:len(gate)] {
			if r.Sign*v >= gate[j] {
				hits[n] = Hit(i<<16 | j)
				n++
			}
		}
	}
	return n
}

func countPlainly(sum []int32, r Rows, gate []float32) {
	for i := range r.N {
		for j, v := range r.Data[i*r.Stride:][:len(gate)] {
			if r.Sign*v >= gate[j] {
				sum[j]++
			}
		}
	}
}

func finitePlainly(values []float32) bool {
	const exponent = 0x7f800000
	for _, v := range values {
		if math.Float32bits(v)&exponent == exponent {
			return false
		}
	}
	return true
}
