package dataset

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestMemoryOfBombs checks that reading files that are made to take memory allocates no more than
// docs/reference/limits.md says, also in all, which bounds what is in memory at a time. It does not
// run in parallel with other tests, as it counts what the process allocates.
func TestMemoryOfBombs(t *testing.T) {
	const mib = 1 << 20
	var zeros bytes.Buffer // 64 MiB, deflated
	w := zlib.NewWriter(&zeros)
	if _, err := w.Write(make([]byte, 64*mib)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	deflated := func(side uint16) []byte { // a TIFF of one strip
		return tiffStrip(zeros.Bytes(), [][2]uint16{{256, side}, {257, side}, {258, 8}, {259, 8}, {262, 1}, {277, 1}, {278, side}})
	}
	image := append(dot(t, 7), make([]byte, 64<<10)...)
	shared := parquetOf(t, slices.Repeat([]sharedRow{{image, strings.Repeat("x", 10_000), 1}}, 20_000), 20_000, parquet.PageBufferSize(1<<20), parquet.SkipPageBounds("image"), parquet.SkipPageBounds("label"))
	wav := filepath.Join(t.TempDir(), "a.wav")
	if err := os.WriteFile(wav, wavOfChannels(2, make([]int16, 200)...), 0o600); err != nil {
		t.Fatal(err)
	}
	huge := binary.LittleEndian.AppendUint32(nil, 1<<30) // the length of the samples
	if f, err := os.OpenFile(wav, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	} else if _, err := f.WriteAt(huge, 40); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	block, sparse := make([]byte, 64*mib), filepath.Join(t.TempDir(), "a.png")
	if err := errors.Join(os.WriteFile(sparse, nil, 0o600), os.Truncate(sparse, 600*mib)); err != nil {
		t.Fatal(err)
	}
	hugePNG := func(side uint32) []byte { // a file that ends after its header
		head := binary.BigEndian.AppendUint32([]byte("IHDR"), side)
		head = append(binary.BigEndian.AppendUint32(head, side), 8, 6, 0, 0, 0)
		head = binary.BigEndian.AppendUint32(head, crc32.ChecksumIEEE(head))
		return append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...)
	}
	for name, c := range map[string]struct {
		read func() error
		most int64 // bytes
		want string
	}{
		"a TIFF strip that may have gigabytes":     {func() error { _, err := decodeImage(deflated(11_000)); return err }, 4 * mib, "decoding may take 3872000000 bytes"},
		"a TIFF strip of 64 MiB for 10,000 pixels": {func() error { _, err := decodeImage(deflated(100)); return err }, 4 * mib, ""},
		"a TIFF of 4 million pixels in one strip":  {func() error { _, err := decodeImage(deflated(2000)); return err }, 4e6 * (8 + 24), ""},
		"a Parquet dictionary for 20,000 rows": {func() error {
			p, err := OpenParquet(t.Context(), ParquetOptions{Paths: []string{shared}})
			if err != nil {
				return err
			}
			defer p.Close()
			for _, i := range []int{0, 9_999, 19_999} {
				if _, err := p.At(t.Context(), i, Frame{}); err != nil {
					return err
				}
			}
			return nil
		}, 512 * mib, ""}, // 1.5 GB with copies; most of it are buffers of headers, of a few KiB each
		"a file of 64 MiB that is decompressed": {func() error { _, err := decompress(bytes.NewReader(block), 1<<30); return err }, 82 * mib, ""}, // a block more than it has
		"an image file of 600 MiB":              {func() error { _, err := frameFile(t.Context(), sparse, Frame{}); return err }, mib, "larger than 512 MiB"},
		"a PNG of 4 billion pixels":             {func() error { _, err := decodeImage(hugePNG(65_535)); return err }, mib, "pixels"},
		"a GIF of 4 billion pixels": {func() error {
			_, err := decodeImage(append([]byte("GIF89a\xff\xff\xff\xff\x00\x00\x00"), make([]byte, 8)...))
			return err
		}, mib, "pixels"},
		"a WAV that states 1 GiB": {func() error {
			_, err := OpenAudio(t.Context(), AudioOptions{Dir: filepath.Dir(wav)})
			return err
		}, mib, "truncated"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := c.read()
		runtime.ReadMemStats(&after)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
		if got := int64(after.TotalAlloc - before.TotalAlloc); got > c.most {
			t.Errorf("%s allocates %d bytes, the limit is %d", name, got, c.most)
		}
	}
}

// tiffStrip returns a TIFF file with one strip.
func tiffStrip(strip []byte, tags [][2]uint16) []byte {
	data := tiffOf(0, tags...)
	data = data[:len(data)-16]
	at := bytes.Index(data, []byte{0x11, 1, 3, 0, 1, 0, 0, 0}) // 273: where the strip is
	binary.LittleEndian.PutUint16(data[at+8:], uint16(len(data)))
	at = bytes.Index(data, []byte{0x17, 1, 3, 0, 1, 0, 0, 0}) // 279: its length
	binary.LittleEndian.PutUint16(data[at+2:], 4)             // of 32 bits
	binary.LittleEndian.PutUint32(data[at+8:], uint32(len(strip)))
	return append(data, strip...)
}
