package dataset

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A pngFormat is a combination of colour type and depth that PNG has. The colour types are 0
// (grey), 2 (RGB), 3 (palette), 4 (grey with alpha) and 6 (RGBA).
type pngFormat struct {
	colour, depth byte // depth: bits per value
	channels      int  // values per pixel in the file; 1 for an index into a palette
}

var pngFormats = []pngFormat{
	{0, 1, 1}, {0, 2, 1}, {0, 4, 1}, {0, 8, 1}, {0, 16, 1}, {2, 8, 3}, {2, 16, 3}, {3, 1, 1}, {3, 2, 1}, {3, 4, 1}, {3, 8, 1},
	{4, 8, 2}, {4, 16, 2}, {6, 8, 4}, {6, 16, 4},
}

// randomPNG returns a PNG file of h x w random pixels with random filters, in chunks of random
// sizes.
func randomPNG(t *testing.T, r *rand.Rand, f pngFormat, h, w int, transparent bool) []byte {
	t.Helper()
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	var b bytes.Buffer
	b.WriteString(pngSignature)
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(w)), uint32(h))
	writeChunk(&b, "IHDR", append(header, f.depth, f.colour, 0, 0, 0))
	writeChunk(&b, "tEXt", random(5))
	if f.colour == 3 {
		writeChunk(&b, "PLTE", random(3*(1<<f.depth)))
	}
	if transparent {
		switch f.colour {
		case 0, 2:
			writeChunk(&b, "tRNS", make([]byte, 2*f.channels))
		case 3:
			writeChunk(&b, "tRNS", random(1<<f.depth/2))
		}
	}
	var pixels bytes.Buffer
	z := zlib.NewWriter(&pixels)
	for range h {
		row := random(1 + (w*int(f.depth)*f.channels+7)/8)
		row[0] %= 5 // the filter, 0 to 4
		if _, err := z.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for data := pixels.Bytes(); len(data) > 0; {
		n := min(r.IntN(200), len(data))
		writeChunk(&b, "IDAT", data[:n])
		data = data[n:]
	}
	writeChunk(&b, "tIME", random(7))
	writeChunk(&b, "IEND", nil)
	return b.Bytes()
}

// TestPNGByRows checks that a PNG image that is decoded in strips of rows by pngRows, and resized
// and cropped by a Frame, equals to the bit what the Frame makes of the image that package png
// decodes.
func TestPNGByRows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		format := rapid.SampledFrom(pngFormats).Draw(rt, "format")
		h, w := rapid.IntRange(1, 60).Draw(rt, "h"), rapid.IntRange(1, 60).Draw(rt, "w")
		file := randomPNG(t, r, format, h, w, rapid.Bool().Draw(rt, "transparent"))
		f := Frame{
			Resize: rapid.IntRange(0, 70).Draw(rt, "resize"), Square: rapid.Bool().Draw(rt, "square"),
			Height: rapid.IntRange(0, 40).Draw(rt, "height"), Width: rapid.IntRange(0, 40).Draw(rt, "width"),
			Channels:      rapid.SampledFrom([]int{0, 1, 3}).Draw(rt, "channels"),
			Interpolation: rapid.SampledFrom([]string{"bilinear", "bicubic", "nearest"}).Draw(rt, "interpolation"),
		}
		whole, err := png.Decode(bytes.NewReader(file))
		if err != nil {
			rt.Fatal(err)
		}
		want, err := f.Image(whole)
		if err != nil {
			rt.Fatal(err)
		}
		images, ok, err := pngRows(bytes.NewReader(file), rapid.IntRange(1, 500).Draw(rt, "pixels in a strip"))
		if err != nil || !ok {
			rt.Fatalf("pngRows: %v, %v", ok, err)
		}
		got, err := f.imageStrips(images, h, w)
		if err != nil {
			rt.Fatal(err)
		}
		if !slices.Equal(got.Shape, want.Shape) || !slices.Equal(got.Data, want.Data) {
			rt.Fatalf("%v differs from the frame of the whole image, %v", got.Shape, want.Shape)
		}
	})
}

// TestDecodePNG checks that the pixels of decodePNG are those of package png, to the bit, and that
// it reports for which formats it leaves the decoding to package png.
func TestDecodePNG(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		format, transparent := rapid.SampledFrom(pngFormats).Draw(rt, "format"), rapid.Bool().Draw(rt, "transparent")
		h, w := rapid.IntRange(1, 60).Draw(rt, "h"), rapid.IntRange(1, 60).Draw(rt, "w")
		file := randomPNG(t, r, format, h, w, transparent)
		got, ok := decodePNG(file)
		if want := format.depth == 8 && (format.colour == 6 || format.colour < 3 && !transparent); ok != want {
			rt.Fatalf("decoded: %v, want %v", ok, want)
		}
		if !ok {
			return
		}
		want, err := png.Decode(bytes.NewReader(file))
		if err != nil {
			rt.Fatal(err)
		}
		if format.colour == 6 && !slices.Equal(got.(*image.NRGBA).Pix, want.(*image.NRGBA).Pix) {
			rt.Fatal("the pixels with alpha differ from those of package png")
		}
		if a, b := from8Bit(got), from8Bit(want); a.h != b.h || a.w != b.w || a.c != b.c || !slices.Equal(a.pix, b.pix) {
			rt.Fatalf("%d x %d x %d differs from package png, %d x %d x %d", a.h, a.w, a.c, b.h, b.w, b.c)
		}
	})
}

// TestDamagedPNGByRows checks PNG files that are truncated or have a changed bit. Where package png
// returns an error, decodePNG does not decode the file, and strips of rows are an error. Nothing
// else is an error in strips.
func TestDamagedPNGByRows(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, format := range pngFormats {
		file := randomPNG(t, r, format, 9, 11, true)
		try := func(what string, at int, damaged []byte) {
			t.Helper()
			_, want := png.Decode(bytes.NewReader(damaged))
			if _, ok := decodePNG(damaged); ok && want != nil {
				t.Errorf("%v, %s at %d: decoded; package png: %v", format, what, at, want)
			}
			images, ok, err := pngRows(bytes.NewReader(damaged), 30) // strips of 30 pixels
			if err == nil && ok {
				_, err = Frame{}.imageStrips(images, 9, 11)
			}
			if c, _ := png.DecodeConfig(bytes.NewReader(damaged)); c.Width != 11 || c.Height != 9 {
				return // frameFile reads the size first, and fails there
			}
			if (err == nil) != (want == nil) && ok {
				t.Errorf("%v, %s at %d: %v; package png: %v", format, what, at, err, want)
			}
		}
		for at := range file {
			damaged := bytes.Clone(file)
			damaged[at] ^= 1 << r.IntN(8)
			try("a changed bit", at, damaged)
			try("truncated", at, file[:at])
		}
	}
}

// TestLargePNG checks that a large PNG file, which is decoded in strips of rows, has the pixels
// that package png decodes, and that strips are refused for an interlaced file, whose rows are not
// in order. A truncated file is a BadSample (the error of one sample).
func TestLargePNG(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	img := image.NewGray(image.Rect(0, 0, 4100, 2100))
	for i := range img.Pix {
		img.Pix[i] = byte(i % 251)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "large.png")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	// The second argument of isLarge is the size of the file in bytes.
	if c := (image.Config{Width: 4100, Height: 2100}); !isLarge(c, int64(b.Len())) || isLarge(c, 100) || isLarge(image.Config{Width: 1 << 20, Height: 1 << 20}, 1<<28) {
		t.Error("an image of 8.6 million pixels is not large, or one is that has too many pixels, or too many for its bytes")
	}
	frame := Frame{Height: 8, Width: 16}
	want, err := frame.Image(img)
	if err != nil {
		t.Fatal(err)
	}
	got, err := frameFile(t.Context(), path, frame) // decodes and resizes
	if err != nil || !slices.Equal(got.Data, want.Data) {
		t.Errorf("%v: %v, want %v", err, got.Data, want.Data)
	}
	raw := b.Bytes()
	// The header follows the signature and its own length and type of 4 bytes each. Its last byte,
	// at 12, says whether the image is interlaced.
	raw[len(pngSignature)+8+12] = 1
	if _, _, err := pngRows(bytes.NewReader(raw), 1); err == nil {
		t.Error("a header with a wrong checksum is accepted")
	}
	// The checksum, of the chunk's type and data, follows the data.
	binary.BigEndian.PutUint32(raw[len(pngSignature)+8+pngHeader:], crc32.ChecksumIEEE(raw[len(pngSignature)+4:len(pngSignature)+8+pngHeader]))
	if _, ok, err := pngRows(bytes.NewReader(raw), 1); ok || err != nil {
		t.Errorf("an interlaced file is decoded row by row: %v", err)
	}
	truncated := filepath.Join(dir, "damaged.png")
	if err := os.WriteFile(truncated, b.Bytes()[:b.Len()/2], 0o666); err != nil {
		t.Fatal(err)
	}
	folder, err := OpenFolder(t.Context(), FolderOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var bad *BadSample
	if _, err := folder.At(t.Context(), 0, frame); !errors.As(err, &bad) || bad.Name != "damaged.png" {
		t.Errorf("a truncated file: %v", err)
	}
}
