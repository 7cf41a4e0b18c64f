// Command parquetfiles writes images into Parquet files as Arrow's libraries, such as pyarrow,
// write those of Hugging Face datasets: with a dictionary or without, in both versions of data
// pages, in each usual compression, and without a page index.
//
//	go run .
//
// It writes NAME.parquet into the current folder. Row i of 60 in three row groups has a grey image
// of one pixel of value i (row 7 has none), the label i modulo 3, and the angle i / 2.
package main

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"log"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

const (
	rows     = 60
	groups   = 3
	features = `{"info": {"features": {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog", "owl"], "_type": "ClassLabel"}}}}`
)

func main() {
	// Small pages, so that a row group has several.
	pages := parquet.WithDataPageSize(1 << 10)
	batch := parquet.WithBatchSize(4)
	v2 := parquet.WithDataPageVersion(parquet.DataPageV2)
	plain := parquet.WithDictionaryDefault(false)
	for name, options := range map[string][]parquet.WriterProperty{
		"default":         {parquet.WithCompression(compress.Codecs.Snappy)},
		"plain":           {plain, pages, batch},
		"v2-zstd":         {v2, parquet.WithCompression(compress.Codecs.Zstd), pages, batch},
		"v2-zstd-plain":   {v2, plain, parquet.WithCompression(compress.Codecs.Zstd), pages, batch},
		"gzip":            {parquet.WithCompression(compress.Codecs.Gzip), pages, batch},
		"brotli":          {v2, parquet.WithCompression(compress.Codecs.Brotli)},
		"lz4":             {parquet.WithCompression(compress.Codecs.Lz4Raw)},
		"delta":           {plain, v2, parquet.WithEncodingFor("image.bytes", parquet.Encodings.DeltaLengthByteArray), parquet.WithEncodingFor("label", parquet.Encodings.DeltaBinaryPacked), pages, batch},
		"dictionary-full": {parquet.WithDictionaryPageSizeLimit(300), parquet.WithCompression(compress.Codecs.Snappy), pages, batch},
	} {
		if err := write(name+".parquet", options); err != nil {
			log.Fatal(fmt.Errorf("%s: %w", name, err))
		}
	}
}

func write(path string, options []parquet.WriterProperty) error {
	metadata := arrow.NewMetadata([]string{"huggingface"}, []string{features})
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "image", Nullable: true, Type: arrow.StructOf(
			arrow.Field{Name: "bytes", Nullable: true, Type: arrow.BinaryTypes.Binary}, arrow.Field{Name: "path", Nullable: true, Type: arrow.BinaryTypes.String})},
		{Name: "label", Nullable: true, Type: arrow.PrimitiveTypes.Int64},
		{Name: "angle", Nullable: true, Type: arrow.PrimitiveTypes.Float64},
		{Name: "caption", Nullable: true, Type: arrow.BinaryTypes.String},
	}, &metadata)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w, err := pqarrow.NewFileWriter(schema, f, parquet.NewWriterProperties(options...), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return err
	}
	for g := range groups {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i := g * rows / groups; i < (g+1)*rows/groups; i++ {
			column := b.Field(0).(*array.StructBuilder)
			column.Append(true)
			if i == 7 {
				column.FieldBuilder(0).(*array.BinaryBuilder).AppendNull()
			} else {
				column.FieldBuilder(0).(*array.BinaryBuilder).Append(pixel(uint8(i)))
			}
			column.FieldBuilder(1).(*array.StringBuilder).Append(fmt.Sprintf("%d.png", i))
			b.Field(1).(*array.Int64Builder).Append(int64(i % 3))
			b.Field(2).(*array.Float64Builder).Append(float64(i) / 2)
			b.Field(3).(*array.StringBuilder).AppendNull()
		}
		record := b.NewRecordBatch()
		if err := w.Write(record); err != nil {
			return err
		}
		record.Release()
	}
	return w.Close()
}

// pixel returns a PNG of one grey pixel.
func pixel(value uint8) []byte {
	img := image.NewGray(image.Rect(0, 0, 1, 1))
	img.Pix[0] = value
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		log.Fatal(err)
	}
	return b.Bytes()
}
