package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// TestRoundTrip checks that a Codec reads what it wrote to a state, the saved form of unfinished
// work. "test" is the kind, which names what wrote the state.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		i, f, b := rapid.Int().Draw(t, "int"), rapid.Float64().Draw(t, "float"), rapid.Bool().Draw(t, "bool")
		s := rapid.String().Draw(t, "string")
		is := rapid.SliceOf(rapid.Int()).Draw(t, "ints")
		fs := rapid.SliceOf(rapid.Float64()).Draw(t, "floats")
		gs := rapid.SliceOf(rapid.Float32()).Draw(t, "float32s")
		hs := rapid.SliceOf(rapid.Int32()).Draw(t, "int32s")
		js := rapid.SliceOf(rapid.Uint16()).Draw(t, "uint16s")
		data := written(t, "test", func(c *Codec) {
			c.Values(&i, &f, &b, &s, &is, &fs, fs, &gs, gs, hs, js)
		})
		var i2 int
		var f2 float64
		var b2 bool
		var s2 string
		var is2 []int
		var fs2 []float64
		var gs2 []float32
		fs3, gs3 := make([]float64, len(fs)), make([]float32, len(gs))
		hs2, js2 := make([]int32, len(hs)), make([]uint16, len(js))
		read := func(c *Codec) {
			c.Values(&i2, &f2, &b2, &s2, &is2, &fs2, fs3, &gs2, gs3, hs2,
				js2)
		}
		if err := Unmarshal(data, "test", 1, read); err != nil {
			t.Fatal(err)
		}
		same := i2 == i && f2 == f && b2 == b && s2 == s && slices.Equal(is2, is) &&
			slices.Equal(fs2, fs) && slices.Equal(fs3, fs) && slices.Equal(gs2, gs) &&
			slices.Equal(gs3, gs) && slices.Equal(hs2, hs) && slices.Equal(js2, js)
		if !same {
			t.Fatal("what was read is not what was written")
		}
	})
}

// written returns a state of version 1.
func written(t rapid.TB, kind string, code func(*Codec)) []byte {
	t.Helper()
	data, err := Marshal(kind, 1, code)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestStream checks that Stream writes the same bytes as Marshal, for states of any length, with
// little memory, and that Load reads them in pieces. piece is the number of bytes that are written
// or read at a time. Nested writes the output of a function, here inner, as a string.
func TestStream(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.IntRange(0, 3*piece/4), 1, 4).Draw(t, "lengths")
		inner := []byte(strings.Repeat("inner", lengths[0]))
		var stream *writer
		write := func(c *Codec) {
			stream = c.w
			for _, n := range lengths {
				even, ints, x := n%2 == 0, slices.Repeat([]int{-1}, n), strings.Repeat("x", n)
				singles, words := slices.Repeat([]float32{1.5}, n), slices.Repeat([]uint16{65535},
					n)
				c.Values(make([]float64, n), &even, singles, words, &n, &ints, &x)
			}
			c.Nested(func(to io.Writer) error { _, err := to.Write(inner); return err })
		}
		want := written(t, "test", write)
		var got, sizes = bytes.Buffer{}, &largest{}
		if err := Stream(io.MultiWriter(&got, sizes), "test", 1, write); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("%d bytes, want %d", got.Len(), len(want))
		}
		if sizes.n > 2*piece || cap(stream.buf) > 4*piece {
			t.Fatalf("%d bytes were written at once, from a buffer of %d", sizes.n, cap(stream.buf))
		}
		read := func(c *Codec) {
			for _, n := range lengths {
				uint16s, float32s := make([]uint16, n), make([]float32, n)
				var floats []float64
				var even bool
				var number int
				var ints []int
				var text string
				c.Values(&floats, &even, float32s, uint16s, &number, &ints, &text)
				if len(floats) != n || even != (n%2 == 0) || number != n || len(ints) != n ||
					len(text) != n || n > 0 && (uint16s[n-1] != 65535 || float32s[n-1] != 1.5) {
					t.Fatal("what was read is not what was written")
				}
			}
			var inside []byte
			if c.Values(&inside); !bytes.Equal(inside, inner) {
				t.Fatal("the nested bytes that were read are not those that were written")
			}
		}
		if err := Unmarshal(want, "test", 1, read); err != nil {
			t.Fatal(err)
		}
		c, err := open(iotest.HalfReader(&got), "test", 1)
		if err != nil {
			t.Fatal(err)
		}
		read(c)
		if err := c.finish(); err != nil {
			t.Fatal(err)
		}
	})
}

// largest is an io.Writer that records the largest single write.
type largest struct{ n int }

func (l *largest) Write(p []byte) (int, error) {
	l.n = max(l.n, len(p))
	return len(p), nil
}

// A limited is an io.Writer that has room for this many bytes and then fails.
type limited int

func (f *limited) Write(p []byte) (int, error) {
	if *f -= limited(len(p)); *f < 0 {
		return 0, errFull
	}
	return len(p), nil
}

var errFull = errors.New("no space left on device")

// TestStreamErrors checks that Stream returns the error of a write, and that of Nested, which calls
// its function twice, if the second call writes another number of bytes.
func TestStreamErrors(t *testing.T) {
	t.Parallel()
	for _, room := range []limited{0, 100, 2 * piece, 5 * piece} {
		err := Stream(&room, "test", 1, func(c *Codec) {
			c.Values(make([]float64, piece))
			c.Nested(func(to io.Writer) error {
				_, err := to.Write(make([]byte, 3*piece))
				return err
			})
		})
		if !errors.Is(err, errFull) {
			t.Errorf("with room for %d bytes: error %v, want errFull", room, err)
		}
	}
	times := 0
	err := Stream(io.Discard, "test", 1, func(c *Codec) {
		c.Nested(func(to io.Writer) error {
			times++
			_, err := to.Write(make([]byte, times))
			return err
		})
	})
	if err == nil || !strings.Contains(err.Error(), "1 bytes at first and 2") {
		t.Errorf("nested output of another length: error %v, want one with %q", err, "1 bytes at first and 2")
	}
}

func TestNaNAndInfinity(t *testing.T) {
	t.Parallel()
	v := []float64{math.NaN(), math.Inf(-1)}
	data := written(t, "test", func(c *Codec) { c.Values(v) })
	clear(v)
	err := Unmarshal(data, "test", 1, func(c *Codec) { c.Values(v) })
	if err != nil || !math.IsNaN(v[0]) || !math.IsInf(v[1], -1) {
		t.Errorf("read %v (error %v), want NaN and -Inf", v, err)
	}
}

// TestLayout compares a state with one written by hand: magic, kind, version and payload, here a
// slice of one float32; the checksum is left out. The format must not change, because states are on
// disk.
func TestLayout(t *testing.T) {
	t.Parallel()
	got, err := Marshal("k", 2, func(c *Codec) { c.Values([]float32{1}) })
	if err != nil {
		t.Fatal(err)
	}
	want := []byte("noether\x01" + "\x01\x00\x00\x00\x00\x00\x00\x00k" + "\x02\x00\x00\x00\x00\x00\x00\x00" +
		"\x01\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x80\x3f")
	if !bytes.Equal(got[:len(got)-4], want) {
		t.Errorf("got  % x\nwant % x", got[:len(got)-4], want)
	}
}

// example writes or reads a state.
func example(c *Codec) {
	n, layer, yes := -5, "layer", true
	c.Values(&n, []float64{1, 2, 3}, &layer, &yes)
}

// openExample reads the example with open.
func openExample(data []byte) error {
	c, err := open(bytes.NewReader(data), "test", 1)
	if err != nil {
		return err
	}
	example(c)
	return c.finish()
}

func TestTruncationAndBitFlips(t *testing.T) {
	t.Parallel()
	data := written(t, "test", example)
	for n := range data {
		if Unmarshal(data[:n], "test", 1, example) == nil {
			t.Errorf("Unmarshal accepted the first %d of %d bytes", n, len(data))
		}
		if openExample(data[:n]) == nil {
			t.Errorf("open accepted the first %d of %d bytes", n, len(data))
		}
	}
	for bit := range 8 * len(data) {
		bad := bytes.Clone(data)
		bad[bit/8] ^= 1 << (bit % 8)
		if Unmarshal(bad, "test", 1, example) == nil {
			t.Errorf("Unmarshal did not detect the flipped bit %d", bit)
		}
		if err := openExample(bad); err == nil || bit >= 8*len(magic) && !strings.Contains(err.Error(), "altered") {
			t.Errorf("open did not detect the flipped bit %d: %v", bit, err)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	sealed := func(payload ...uint64) []byte { // a state of any payload with a valid checksum
		return written(t, "test", func(c *Codec) {
			for _, v := range payload {
				n := int(v)
				c.Values(&n)
			}
		})
	}
	// The number in front of the kind is its length.
	hugeKind := []byte(magic + "\xff\xff\xff\xff\xff\xff\xff\x7f")
	hugeKind = binary.LittleEndian.AppendUint32(hugeKind, crc32.Checksum(hugeKind, castagnoli()))
	read := func(v any) func(*Codec) { return func(c *Codec) { c.Values(v) } }
	// A slice or a string starts with its length. "huge" and "negative" are lengths that the bytes
	// that follow cannot have.
	cases := []struct {
		name string
		data []byte
		kind string
		read func(*Codec)
		want string
	}{
		{"nothing", nil, "test", nil, "not a state: its 0 bytes"},
		{"text", []byte("hello, this is a text file"), "test", nil, "not a state"},
		{"other kind", sealed(), "seis", nil, `the state is of "test", not of "seis"`},
		{"huge kind", hugeKind, "test", nil, "claims 9223372036854775807 elements"},
		{"trailing bytes", sealed(7), "test", func(*Codec) {}, "8 bytes too many"},
		{"read past the end", sealed(), "test", read(new(float64)),
			"claims 1 elements of 8 bytes with 0 bytes left"},
		{"huge length", sealed(1<<60, 1), "test", read(new([]float64)), "with 8 bytes left"},
		{"negative length", sealed(math.MaxUint64), "test", read(new([]int)), "claims -1 elements"},
		{"huge string", sealed(1 << 62), "test", read(new(string)), "with 0 bytes left"},
		{"invalid bool", sealed(2), "test", read(new(bool)), "value 2 for a bool"},
		{"other length", sealed(1, 0), "test", read(make([]float64, 2)), "1 values instead of 2"},
		{"too many", sealed(3), "test", func(c *Codec) { c.Len(new(int), 2) },
			"3 elements of at most 2"},
		{"another job", sealed(3), "test", func(c *Codec) { c.Matches(2) }, "of another job"},
		{"invalid", sealed(3), "test", func(c *Codec) {
			c.Values(new(int))
			c.Check(false, "no %d", 3)
		}, "no 3"},
		{"the first error is kept", sealed(), "test", func(c *Codec) {
			c.Fail(errors.New("first"))
			c.Values(new(int))
		}, "first"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := Unmarshal(c.data, c.kind, 1, c.read)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v does not contain %q", err, c.want)
			}
		})
	}
	err := Unmarshal(written(t, "test", example), "test", 2, example)
	if err == nil || !strings.Contains(err.Error(), "version 1; this program reads version 2") {
		t.Errorf("another version: error %v, want one with %q", err, "version 1; this program reads version 2")
	}
}

// TestMap checks that Map reads what it wrote, and refuses more entries than it is told to expect.
func TestMap(t *testing.T) {
	t.Parallel()
	m := map[string]int{"b": 2, "a": 1}
	code := func(m map[string]int, most int) func(*Codec) {
		return func(c *Codec) { Map(c, m, most, func(v *int) { c.Values(v) }) }
	}
	data, got := written(t, "test", code(m, 2)), map[string]int{}
	if err := Unmarshal(data, "test", 1, code(got, 2)); err != nil || !maps.Equal(got, m) {
		t.Errorf("read %v (error %v), want %v", got, err, m)
	}
	if err := Unmarshal(data, "test", 1, code(got, 1)); err == nil {
		t.Error("Map read two entries where at most one is expected")
	}
}

// readBy reads a value for each letter of script: i an int, F a slice of float64 and so on. It
// returns the bytes of the strings and slices that were read.
func readBy(script []byte, c *Codec) (read int) {
	for _, letter := range script {
		switch letter {
		case 'i':
			c.Values(new(int))
		case 'f':
			c.Values(new(float64))
		case 'b':
			c.Values(new(bool))
		case 's':
			var s string
			c.Values(&s)
			read += len(s)
		case 'I':
			var list []int
			c.Values(&list)
			read += 8 * len(list)
		case 'F':
			var list []float64
			c.Values(&list)
			read += 8 * len(list)
		case 'g':
			c.Values(make([]float32, 3))
		case 'G':
			var list []float32
			c.Values(&list)
			read += 4 * len(list)
		}
	}
	return read
}

// FuzzReader reads states with a random payload and a valid checksum, without which every state
// would be refused. Unmarshal and open must agree on whether there is an error.
func FuzzReader(f *testing.F) {
	whole, err := Marshal("test", 1, example)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole[:60], []byte("ifsFgGbI"))
	f.Add([]byte{}, []byte("FFFF"))
	f.Fuzz(func(t *testing.T, body, script []byte) {
		Unmarshal(body, "test", 1, example)
		data, err := Marshal("test", 1, func(c *Codec) { c.w.buf = append(c.w.buf, body...) })
		if err != nil {
			t.Fatal(err)
		}
		read, left := 0, 0
		errInMemory := Unmarshal(data, "test", 1, func(c *Codec) {
			read = readBy(script, c)
			left = len(c.r.rest)
		})
		if read > len(body) {
			t.Fatalf("%d bytes of elements out of %d", read, len(body))
		}
		if errInMemory == nil && left > 0 {
			t.Fatal("trailing bytes go unnoticed")
		}
		piecewise, err := open(bytes.NewReader(data), "test", 1)
		if err != nil {
			t.Fatalf("open refused a valid state: %v", err)
		}
		readBy(script, piecewise)
		if err := piecewise.finish(); (err == nil) != (errInMemory == nil) {
			t.Fatalf("error of Unmarshal: %v, of open: %v", errInMemory, err)
		}
	})
}

// BenchmarkHundredMegabytes writes and reads a state of 100 MiB.
func BenchmarkHundredMegabytes(b *testing.B) {
	v := make([]float64, 100<<20/8)
	b.SetBytes(100 << 20)
	for b.Loop() {
		data, err := Marshal("test", 1, func(c *Codec) { c.Values(v) })
		if err != nil {
			b.Fatal(err)
		}
		if err := Unmarshal(data, "test", 1, func(c *Codec) { c.Values(v) }); err != nil {
			b.Fatal(err)
		}
	}
}
