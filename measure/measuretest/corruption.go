package measuretest

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// refusesTruncated cuts a state short at every length, or at a few hundred of them where it is long.
func (c contract) refusesTruncated(t *testing.T, state []byte) {
	t.Helper()
	for n := 0; n < len(state); n += 1 + len(state)/300 {
		if c.empty(t).UnmarshalBinary(state[:n]) == nil {
			t.Fatalf("the first %d of %d bytes are taken for a state", n, len(state))
		}
	}
	if c.empty(t).UnmarshalBinary(append(slices.Clone(state), 0)) == nil {
		t.Fatal("a state with a byte too many is taken")
	}
}

// survivesAltered changes some bytes. As it stands that is an error; with the checksum made right (states are internal/state's format)
// it may be taken or refused, but neither reading nor scoring may panic.
func (c contract) survivesAltered(t *rapid.T, state []byte) {
	bad := slices.Clone(state)
	body := len(bad) - crc32.Size
	// Lengths and counts, the interesting numbers, are more often near the start.
	at := rapid.IntRange(0, body-1).Draw(t, "byte")
	if rapid.Bool().Draw(t, "near the start") {
		at %= min(body, 200)
	}
	value := rapid.Byte().Filter(func(v byte) bool { return v != bad[at] }).Draw(t, "value")
	bad[at] = value
	if c.empty(t).UnmarshalBinary(bad) == nil {
		t.Fatalf("byte %d altered goes unnoticed", at)
	}
	binary.LittleEndian.PutUint32(bad[body:], crc32.Checksum(bad[:body], crc32.MakeTable(crc32.Castagnoli)))
	a := c.empty(t)
	if a.UnmarshalBinary(bad) == nil {
		a.scores()
	}
}
