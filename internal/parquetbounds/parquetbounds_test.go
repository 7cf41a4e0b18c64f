package parquetbounds

import (
	"bytes"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/format"
)

// TestCheck checks the bound on the size of a page, of a dictionary too, which compresses to far
// less.
func TestCheck(t *testing.T) {
	t.Parallel()
	type row struct {
		Plain string `parquet:"plain"`
		Dict  string `parquet:"dict,dict"`
	}
	for name, r := range map[string]row{"plain": {Plain: strings.Repeat("x", 1<<20)}, "dict": {Dict: strings.Repeat("x", 1<<20)}} {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[row](&b, parquet.Compression(&parquet.Zstd))
		if _, err := w.Write([]row{r}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		data := bytes.NewReader(b.Bytes())
		f, err := Open(data, data.Size())
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(data, f, nil, 2<<20); err != nil {
			t.Errorf("%s: a page within the bound: %v", name, err)
		}
		if err := Check(data, f, nil, 1<<19); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "decompresses to") {
			t.Errorf("%s: a page of 1 MiB, of %d bytes in the file: error %v", name, data.Size(), err)
		}
	}
}

// TestCheckDespiteHeaders checks that a page is refused by what it decompresses to, where its
// header states less, and that LZ4 data that are damaged are.
func TestCheckDespiteHeaders(t *testing.T) {
	t.Parallel()
	type row struct {
		X string `parquet:"x"`
	}
	for _, codec := range []compress.Codec{&parquet.Snappy, &parquet.Gzip, &parquet.Brotli, &parquet.Zstd, &parquet.Lz4Raw} {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[row](&b, parquet.Compression(codec), parquet.DataPageVersion(1))
		if _, err := w.Write([]row{{strings.Repeat("x", 1<<20)}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		chunk := &f.Metadata().RowGroups[0].Columns[0].MetaData
		header, length, err := readHeader(bytes.NewReader(b.Bytes()), chunk.DataPageOffset, int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		at := chunk.DataPageOffset + length
		check := func(data []byte, stated int32, most int64) error {
			h := *header
			h.UncompressedPageSize = stated
			return checkSize(bytes.NewReader(data), at, &h, chunk.Codec, most)
		}
		if err := check(b.Bytes(), header.UncompressedPageSize, 2<<20); err != nil {
			t.Errorf("%v: a page within the bound: %v", chunk.Codec, err)
		}
		if err := check(b.Bytes(), 100, 1<<19); err == nil {
			t.Errorf("%v: a page of 1 MiB whose header states 100 bytes is no error", chunk.Codec)
		}
		if chunk.Codec == format.Lz4Raw {
			cut := bytes.Clone(b.Bytes())
			clear(cut[at+int64(header.CompressedPageSize)/2 : at+int64(header.CompressedPageSize)])
			if err := check(cut, header.UncompressedPageSize, 2<<20); err == nil {
				t.Error("damaged LZ4 data are no error")
			}
		}
	}
}

// FuzzCheck checks that any bytes are an error, or a file whose pages can be listed.
func FuzzCheck(f *testing.F) {
	type row struct {
		Text string  `parquet:"text,dict"`
		X    float64 `parquet:"x"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b)
	if _, err := w.Write([]row{{"a", 1}, {"b", 2}}); err != nil {
		f.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		var file *parquet.File
		func() {
			defer func() { recover() }() // the library panics on some files; callers return that as an error
			file, _ = Open(r, r.Size())
		}()
		if file == nil {
			return
		}
		for _, g := range file.Metadata().RowGroups {
			for i := range g.Columns {
				checkChunk(r, &g.Columns[i].MetaData, 1<<20)
			}
		}
	})
}
