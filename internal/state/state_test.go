package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// TestRoundTrip checks that a Reader reads what a Writer wrote to a state, the saved form of
// unfinished work. "test" is the kind, which names what wrote the state, and 3 the version of its
// format.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		i, f, b := rapid.Int().Draw(t, "int"), rapid.Float64().Draw(t, "float"), rapid.Bool().Draw(t, "bool")
		s := rapid.String().Draw(t, "string")
		is := rapid.SliceOf(rapid.Int()).Draw(t, "ints")
		fs := rapid.SliceOf(rapid.Float64()).Draw(t, "floats")
		gs := rapid.SliceOf(rapid.Float32()).Draw(t, "float32s")
		hs := rapid.SliceOf(rapid.Int32()).Draw(t, "int32s")

		w := NewWriter("test", 3)
		w.Int(i)
		w.Float(f)
		w.Bool(b)
		w.String(s)
		w.Ints(is)
		w.Floats(fs)
		w.Floats(fs)
		w.Float32s(gs)
		w.Float32s(gs)
		w.Int32s(hs)

		r, err := NewReader(w.Bytes(), "test", 3)
		if err != nil {
			t.Fatal(err)
		}
		fs2, gs2, hs2 := make([]float64, len(fs)), make([]float32, len(gs)), make([]int32, len(hs))
		ok := r.Int() == i && r.Float() == f && r.Bool() == b && r.String() == s && slices.Equal(r.Ints(), is) &&
			slices.Equal(r.Floats(), fs)
		r.FloatsInto(fs2)
		ok = ok && slices.Equal(r.Float32s(), gs)
		r.Float32sInto(gs2)
		r.Int32sInto(hs2)
		if !ok || !slices.Equal(hs, hs2) || !slices.Equal(fs, fs2) || !slices.Equal(gs, gs2) {
			t.Fatal("what was read is not what was written")
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStream checks that Stream writes the same bytes as a Writer in memory, for states of any
// length, with little memory, and that Open reads them. piece is the number of bytes that are
// written or read at a time. Nested writes the output of a function, here inner, as a string, which
// Raw reads.
func TestStream(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.IntRange(0, 3*piece/4), 1, 4).Draw(t, "lengths")
		inner := []byte(strings.Repeat("inner", lengths[0]))
		write := func(w *Writer) {
			for _, n := range lengths {
				w.Floats(make([]float64, n))
				w.Bool(n%2 == 0)
				w.Float32s(slices.Repeat([]float32{1.5}, n))
				w.Uint16s(slices.Repeat([]uint16{65535}, n))
				w.Int(n)
				w.Ints(slices.Repeat([]int{-1}, n))
				w.String(strings.Repeat("x", n))
			}
			if err := w.Nested(func(to io.Writer) error { _, err := to.Write(inner); return err }); err != nil {
				t.Fatal(err)
			}
		}
		whole := NewWriter("test", 1)
		write(whole)
		want := whole.Bytes()
		var got, sizes = bytes.Buffer{}, &largest{}
		stream := Stream(io.MultiWriter(&got, sizes), "test", 1)
		write(stream)
		if err := stream.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("%d bytes, want %d", got.Len(), len(want))
		}
		if sizes.n > 2*piece || cap(stream.buf) > 4*piece {
			t.Fatalf("%d bytes were written at once, from a buffer of %d", sizes.n, cap(stream.buf))
		}
		inMemory, err := NewReader(want, "test", 1)
		if err != nil {
			t.Fatal(err)
		}
		piecewise, err := Open(iotest.HalfReader(&got), "test", 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*Reader{inMemory, piecewise} {
			for _, n := range lengths {
				uint16s, float32s := make([]uint16, n), make([]float32, n)
				floats, even := r.Floats(), r.Bool()
				r.Float32sInto(float32s)
				r.Uint16sInto(uint16s)
				if len(floats) != n || even != (n%2 == 0) || n > 0 && (uint16s[n-1] != 65535 || float32s[n-1] != 1.5) || r.Int() != n || len(r.Ints()) != n || len(r.String()) != n {
					t.Fatal("what was read is not what was written")
				}
			}
			if inside := r.Raw(); !bytes.Equal(inside, inner) {
				t.Fatal("the nested bytes that were read are not those that were written")
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
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

// TestStreamErrors checks that Close returns the error of a write, and that Nested, which calls its
// function twice, returns one if the second call writes another number of bytes.
func TestStreamErrors(t *testing.T) {
	t.Parallel()
	for _, room := range []limited{0, 100, 2 * piece, 5 * piece} {
		w := Stream(&room, "test", 1)
		w.Floats(make([]float64, piece))
		if err := w.Nested(func(to io.Writer) error { _, err := to.Write(make([]byte, 3*piece)); return err }); err != nil && !errors.Is(err, errFull) {
			t.Error(err)
		}
		if err := w.Close(); !errors.Is(err, errFull) {
			t.Errorf("with room for %d bytes: error %v, want errFull", room, err)
		}
	}
	w, times := Stream(io.Discard, "test", 1), 0
	err := w.Nested(func(to io.Writer) error {
		times++
		_, err := to.Write(make([]byte, times))
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "1 bytes at first and 2") {
		t.Errorf("nested output of another length: error %v, want one with %q", err, "1 bytes at first and 2")
	}
}

func TestNaNAndInfinity(t *testing.T) {
	t.Parallel()
	w := NewWriter("test", 1)
	w.Floats([]float64{math.NaN(), math.Inf(-1)})
	r, err := NewReader(w.Bytes(), "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	if v := r.Floats(); !math.IsNaN(v[0]) || !math.IsInf(v[1], -1) {
		t.Errorf("read %v, want NaN and -Inf", v)
	}
}

// TestLayout compares a state with one written by hand: magic, kind, version and payload, here a
// slice of one float32; the checksum is left out. The format must not change, because states are on
// disk.
func TestLayout(t *testing.T) {
	t.Parallel()
	w := NewWriter("k", 2)
	w.Float32s([]float32{1})
	got := w.Bytes()
	want := []byte("noether\x01" + "\x01\x00\x00\x00\x00\x00\x00\x00k" + "\x02\x00\x00\x00\x00\x00\x00\x00" +
		"\x01\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x80\x3f")
	if !bytes.Equal(got[:len(got)-4], want) {
		t.Errorf("got  % x\nwant % x", got[:len(got)-4], want)
	}
}

// example returns a state.
func example() []byte {
	w := NewWriter("test", 1)
	w.Int(-5)
	w.Floats([]float64{1, 2, 3})
	w.String("layer")
	w.Bool(true)
	return w.Bytes()
}

// openExample reads the example with Open.
func openExample(data []byte) error {
	r, err := Open(bytes.NewReader(data), "test", 1)
	if err != nil {
		return err
	}
	r.Int()
	r.FloatsInto(make([]float64, 3))
	_ = r.String()
	r.Bool()
	return r.Close()
}

func TestTruncationAndBitFlips(t *testing.T) {
	t.Parallel()
	data := example()
	for n := range data {
		if _, err := NewReader(data[:n], "test", 1); err == nil {
			t.Errorf("NewReader accepted the first %d of %d bytes", n, len(data))
		}
		if openExample(data[:n]) == nil {
			t.Errorf("Open accepted the first %d of %d bytes", n, len(data))
		}
	}
	for bit := range 8 * len(data) {
		bad := bytes.Clone(data)
		bad[bit/8] ^= 1 << (bit % 8)
		if _, err := NewReader(bad, "test", 1); err == nil {
			t.Errorf("NewReader did not detect the flipped bit %d", bit)
		}
		if err := openExample(bad); err == nil || bit >= 8*len(magic) && !strings.Contains(err.Error(), "altered") {
			t.Errorf("Open did not detect the flipped bit %d: %v", bit, err)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	sealed := func(payload ...uint64) []byte { // a state of any payload with a valid checksum
		w := NewWriter("test", 1)
		for _, v := range payload {
			w.Int(int(v))
		}
		return w.Bytes()
	}
	// The number in front of the kind is its length.
	hugeKind := []byte(magic + "\xff\xff\xff\xff\xff\xff\xff\x7f")
	hugeKind = binary.LittleEndian.AppendUint32(hugeKind, crc32.Checksum(hugeKind, castagnoli()))
	// A slice or a string starts with its length. "huge" and "negative" are lengths that the bytes
	// that follow cannot have.
	cases := []struct {
		name string
		data []byte
		kind string
		read func(*Reader)
		want string
	}{
		{"nothing", nil, "test", nil, "not a state: its 0 bytes"},
		{"text", []byte("hello, this is a text file"), "test", nil, "not a state"},
		{"other kind", sealed(), "seis", nil, `the state is of "test", not of "seis"`},
		{"huge kind", hugeKind, "test", nil, "claims 9223372036854775807 elements"},
		{"trailing bytes", sealed(7), "test", func(*Reader) {}, "8 bytes too many"},
		{"read past the end", sealed(), "test", func(r *Reader) { r.Float() }, "claims 1 elements of 8 bytes with 0 bytes left"},
		{"huge length", sealed(1<<60, 1), "test", func(r *Reader) { r.Floats() }, "with 8 bytes left"},
		{"negative length", sealed(math.MaxUint64), "test", func(r *Reader) { r.Ints() }, "claims -1 elements"},
		{"huge string", sealed(1 << 62), "test", func(r *Reader) { _ = r.String() }, "with 0 bytes left"},
		{"invalid bool", sealed(2), "test", func(r *Reader) { r.Bool() }, "value 2 for a bool"},
		{"other length", sealed(1, 0), "test", func(r *Reader) { r.FloatsInto(make([]float64, 2)) }, "1 values instead of 2"},
		{"the first error is kept", sealed(), "test", func(r *Reader) { r.Fail(errors.New("first")); r.Int() }, "first"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := NewReader(c.data, c.kind, 1)
			if err == nil && c.read != nil {
				c.read(r)
				err = r.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v does not contain %q", err, c.want)
			}
		})
	}
	if _, err := NewReader(example(), "test", 2); err == nil || !strings.Contains(err.Error(), "version 1; this program reads version 2") {
		t.Errorf("another version: error %v, want one with %q", err, "version 1; this program reads version 2")
	}
}

// readBy calls a method of a Reader for each letter of script: i for Int, F for Floats and so on.
// It returns the bytes of the strings and slices that were read.
func readBy(script []byte, r *Reader) (read int) {
	for _, c := range script {
		switch c {
		case 'i':
			r.Int()
		case 'f':
			r.Float()
		case 'b':
			r.Bool()
		case 's':
			read += len(r.String())
		case 'I':
			read += 8 * len(r.Ints())
		case 'F':
			read += 8 * len(r.Floats())
		case 'g':
			r.Float32sInto(make([]float32, 3))
		case 'G':
			read += 4 * len(r.Float32s())
		}
	}
	return read
}

// FuzzReader reads states with a random payload and a valid checksum, without which every state
// would be refused. NewReader and Open must agree on whether there is an error.
func FuzzReader(f *testing.F) {
	f.Add(example()[:60], []byte("ifsFgGbI"))
	f.Add([]byte{}, []byte("FFFF"))
	f.Fuzz(func(t *testing.T, body, script []byte) {
		NewReader(body, "test", 1)
		w := NewWriter("test", 1)
		w.buf = append(w.buf, body...)
		data := w.Bytes()
		r, err := NewReader(data, "test", 1)
		if err != nil {
			t.Fatalf("NewReader refused a valid state: %v", err)
		}
		read := readBy(script, r)
		if read > len(body) {
			t.Fatalf("%d bytes of elements out of %d", read, len(body))
		}
		errInMemory := r.Close()
		if errInMemory == nil && len(r.rest) > 0 {
			t.Fatal("trailing bytes go unnoticed")
		}
		piecewise, err := Open(bytes.NewReader(data), "test", 1)
		if err != nil {
			t.Fatalf("Open refused a valid state: %v", err)
		}
		readBy(script, piecewise)
		if err := piecewise.Close(); (err == nil) != (errInMemory == nil) {
			t.Fatalf("error of NewReader: %v, of Open: %v", errInMemory, err)
		}
	})
}

// BenchmarkHundredMegabytes writes and reads a state of 100 MiB.
func BenchmarkHundredMegabytes(b *testing.B) {
	v := make([]float64, 100<<20/8)
	b.SetBytes(100 << 20)
	for b.Loop() {
		w := NewWriter("test", 1)
		w.Floats(v)
		r, err := NewReader(w.Bytes(), "test", 1)
		if err != nil {
			b.Fatal(err)
		}
		r.FloatsInto(v)
	}
}
