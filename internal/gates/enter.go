package gates

// Waiting are values of units that wait to be sorted, and where a part of them goes then. Unit j has Size items, those that wait first, and Levels
// counts: Fill[j Levels] values wait, and Fill[j Levels + 1] are at the level above, behind the room of those that wait.
type Waiting struct {
	Gate        []float32 // by unit: values that are no higher do not enter
	Items       []float32 // units x Size
	Size        int
	Fill, Turns []uint16 // units x Levels: counts, and how often each level has moved up
	Levels      int
	Room        int    // of those that wait; fewer do
	Next        int    // room of the level above
	Step        int    // of 2^Step values one moves up
	Draw        uint64 // which of them it is for unit j depends on Draw + j Levels, and on the turn

	Last   []float32 // of unit j at j Apart: values as high as that are strong
	Apart  int
	Ranked []uint8 // by row: 0 where no value is strong
}

// Bulk is the room of those that wait that Enter thins.
const Bulk = 32

// Available reports whether this processor has Enter.
func Available() bool { return available }

// Enter puts values that passed where they wait, from hits[from] on, and the hits of strong ones behind the first found entries of strong, which has room for
// all hits. Where as many wait as there is room for, it sorts them, if they are 32 and the level above has room, and moves one of each 2^Step of the lower half up: what is
// drawn is as Draw says. Else it stops, and returns the index of that hit; it is for the caller to make room before it goes on
// with the next. In the end it returns the number of hits.
func Enter(hits []Hit, from int, r Rows, w *Waiting, strong []Hit, found int) (at, strongs int) {
	units := len(w.Gate)
	if len(w.Items) < units*w.Size || len(w.Fill) < units*w.Levels || len(w.Turns) < units*w.Levels || len(w.Last) < (units-1)*w.Apart+1 ||
		len(w.Ranked) < r.N || len(strong) < len(hits) || w.Levels > 1 && w.Size < w.Room+w.Next {
		panic("gates: values wait where there is no room")
	}
	check(r, w.Gate)
	if from >= len(hits) {
		return len(hits), found
	}
	return enter(hits, from, r, w, strong, found)
}

// Thins reports whether Enter would thin those of unit j that wait.
func (w *Waiting) Thins(j int) bool {
	return w.Room == Bulk && w.Levels > 1 && int(w.Fill[j*w.Levels+1])+Bulk/2>>w.Step <= w.Next
}

// Draw says which of so many values, a power of two, moves up at a turn: what is drawn by a hash (SplitMix64), and then its mirror image.
func Draw(number uint64, turn uint16, of int) int {
	i := int(mix(number, uint64(turn/2))) & (of - 1)
	if turn&1 == 1 {
		return of - 1 - i
	}
	return i
}

func mix(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 + (b+1)*0xd1b54a32d192ed03
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
