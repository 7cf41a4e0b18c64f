package gates

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var odd = []float32{0, float32(math.Copysign(0, -1)), 1, -1, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, math.SmallestNonzeroFloat32}

func values(t *rapid.T, n int, what string) []float32 {
	return rapid.SliceOfN(rapid.OneOf(rapid.Float32Range(-2, 2), rapid.SampledFrom(odd)), n, n).Draw(t, what)
}

// The loops for this processor say what those in Go say, of any values, infinite ones, zeros of both signs and NaN among them.
func TestLoopsAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n, cols, beside := rapid.IntRange(0, 5).Draw(t, "rows"), rapid.IntRange(0, 40).Draw(t, "columns"), rapid.IntRange(0, 3).Draw(t, "beside")
		r := Rows{Data: values(t, n*(cols+beside), "values"), Stride: cols + beside, N: n, Sign: rapid.SampledFrom([]float32{1, -1}).Draw(t, "sign")}
		gate := values(t, cols, "gate")
		got, want := make([]Hit, n*cols), make([]Hit, n*cols)
		got, want = got[:Pass(got, r, gate)], want[:passPlainly(want, r, gate)]
		if !slices.Equal(got, want) {
			t.Fatalf("%v pass, want %v", got, want)
		}
		sum, wantSum := make([]int32, cols), make([]int32, cols)
		Count(sum, r, gate)
		countPlainly(wantSum, r, gate)
		if !slices.Equal(sum, wantSum) {
			t.Fatalf("%v pass, want %v", sum, wantSum)
		}
		for _, h := range got {
			if v := r.Value(h); !(v >= gate[h.Column()]) {
				t.Fatalf("%v passes at %v", v, gate[h.Column()])
			}
			sum[h.Column()]--
		}
		if slices.ContainsFunc(sum, func(n int32) bool { return n != 0 }) {
			t.Fatalf("%v were counted that did not pass, or passed and were not", sum)
		}
		if Finite(r.Data) != finitePlainly(r.Data) || Finite(r.Data) != !slices.ContainsFunc(r.Data, func(v float32) bool { return v-v != 0 }) {
			t.Fatalf("%v are finite: %v", r.Data, Finite(r.Data))
		}
	})
}

// Of 32 that wait the larger half goes on waiting, in order, and of each eight of the others one moves up.
func TestEnterThins(t *testing.T) {
	if !Available() {
		t.Skip("no Enter for this processor")
	}
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.OneOf(rapid.Float32Range(-2, 2), rapid.SampledFrom([]float32{-1, 0, 1})), Bulk, Bulk).Draw(t, "values")
		w := Waiting{Gate: []float32{-3}, Items: make([]float32, 40), Size: 40, Fill: make([]uint16, 2), Turns: []uint16{rapid.Uint16Range(0, 9).Draw(t, "turn"), 0},
			Levels: 2, Room: Bulk, Next: 8, Step: 3, Draw: rapid.Uint64().Draw(t, "draw"), Last: []float32{1.5}, Apart: 1, Ranked: slices.Repeat([]uint8{1}, Bulk)}
		turn := w.Turns[0]
		var hits []Hit
		for i := range in {
			hits = append(hits, Hit(i<<16))
		}
		strong := make([]Hit, Bulk)
		at, found := Enter(hits, 0, Rows{Data: in, Stride: 1, N: Bulk, Sign: 1}, &w, strong, 0)
		sorted := slices.Sorted(slices.Values(in))
		from := Draw(w.Draw, turn, 8)
		if at != Bulk || w.Fill[0] != Bulk/2 || w.Fill[1] != 2 || w.Turns[0] != turn+1 || !slices.Equal(w.Items[:Bulk/2], sorted[Bulk/2:]) ||
			w.Items[Bulk] != sorted[from] || w.Items[Bulk+1] != sorted[8+from] {
			t.Fatalf("%v became %+v, and %d was reached", sorted, w, at)
		}
		for _, h := range strong[:found] {
			if in[h.Row()] < 1.5 {
				t.Fatalf("%v is strong", in[h.Row()])
			}
		}
	})
}

// What does not fit is a mistake of the program.
func TestLengthsAreChecked(t *testing.T) {
	t.Parallel()
	five := make([]float32, 5)
	for name, call := range map[string]func(){
		"rows that are too short": func() { Pass(make([]Hit, 10), Rows{five, 5, 2, 1}, five) },
		"too little room":         func() { Pass(make([]Hit, 4), Rows{five, 5, 1, 1}, five) },
		"other sums":              func() { Count(make([]int32, 4), Rows{five, 5, 1, 1}, five) },
		"no room to wait": func() {
			Enter(make([]Hit, 1), 0, Rows{five, 5, 1, 1}, &Waiting{Gate: five, Size: 1}, make([]Hit, 1), 0)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s went through", name)
				}
			}()
			call()
		}()
	}
}
