package measuretest

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// refusesTruncated checks that truncated or extended states, of at most 300 lengths, are errors.
func (c contract) refusesTruncated(t *testing.T, state []byte) {
	t.Helper()
	for n := 0; n < len(state); n += 1 + len(state)/300 {
		if c.empty(t).UnmarshalBinary(state[:n]) == nil {
			t.Fatalf("the first %d of %d bytes were accepted as a state", n, len(state))
		}
	}
	if c.empty(t).UnmarshalBinary(append(slices.Clone(state), 0)) == nil {
		t.Fatal("a state with an additional byte was accepted")
	}
}

// survivesAltered changes a byte of a state, which must then be an error. With a valid checksum it
// may be accepted or refused, but reading and scoring may not panic.
func (c contract) survivesAltered(t *rapid.T, state []byte) {
	bad := slices.Clone(state)
	body := len(bad) - crc32.Size
	// Lengths and counts are more often near the start.
	at := rapid.IntRange(0, body-1).Draw(t, "byte")
	if rapid.Bool().Draw(t, "near the start") {
		at %= min(body, 200)
	}
	value := rapid.Byte().Filter(func(v byte) bool { return v != bad[at] }).Draw(t, "value")
	bad[at] = value
	if c.empty(t).UnmarshalBinary(bad) == nil {
		t.Fatalf("a change of byte %d is not detected", at)
	}
	binary.LittleEndian.PutUint32(bad[body:], crc32.Checksum(bad[:body], crc32.MakeTable(crc32.Castagnoli)))
	a := c.empty(t)
	if a.UnmarshalBinary(bad) == nil {
		a.scores()
	}
}
