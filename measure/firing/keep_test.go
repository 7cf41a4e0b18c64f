package firing

import "testing"

// The room that is made for a checkpoint holds thresholds of either kind.
func TestRoomForCheckpoints(t *testing.T) {
	t.Parallel()
	for _, o := range []GlobalOptions{
		{Units: 20_000, Rank: 20, References: 1},
		{Units: 20_000, Rank: 1_000, References: 10, Error: 0.1},
		{Units: 20_000, Rank: 1_000, References: 1, Error: 0.02, Sparse: true},
		{Units: 20_000, Rank: 1_000_000, References: 1, Error: 0.3},
	} {
		raw, err := NewGlobal(o).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if room := o.Bytes()/8*9 + 1<<12; int64(len(raw)) > room {
			t.Errorf("%+v: a state of %d bytes, and room for %d", o, len(raw), room)
		}
	}
}
