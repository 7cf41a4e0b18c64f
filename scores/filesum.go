package scores

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"

	"github.com/noether-ml/noether/internal/filesys"
)

// A FileSum is the size of a file and its checksum CRC-32C (with the Castagnoli polynomial). It
// serves to recognise an altered file.
type FileSum struct {
	Size   int64  `json:"size"` // in bytes
	CRC32C string `json:"crc"`  // 8 hexadecimal digits
}

// SumFile returns the FileSum of a file.
func SumFile(path string) (FileSum, error) {
	f, err := os.Open(path)
	if err != nil {
		return FileSum{}, err
	}
	defer f.Close()
	buffer := sumBuffers.Get().(*[1 << 15]byte)
	defer sumBuffers.Put(buffer)
	var size int64
	var sum uint32
	for {
		n, err := f.Read(buffer[:])
		sum, size = crc32.Update(sum, castagnoli, buffer[:n]), size+int64(n)
		if errors.Is(err, io.EOF) {
			return FileSum{size, fmt.Sprintf("%08x", sum)}, nil
		}
		if err != nil {
			return FileSum{}, err
		}
	}
}

// sumBuffers are buffers of SumFile. Merging the folders of shards (parts of the samples that one
// process measures) sums hundreds of thousands of small files, and a buffer for each would be most
// of its garbage.
var sumBuffers = sync.Pool{New: func() any { return new([1 << 15]byte) }}

// SumOf returns the FileSum of a file with the given content.
func SumOf(content []byte) FileSum {
	return FileSum{int64(len(content)), string(appendHex(nil, crc32.Checksum(content, castagnoli)))}
}

// Verify returns an error unless the file can be read and has the size and the checksum of s.
func (s FileSum) Verify(path string) error {
	actual, err := s.ofFile(path)
	if err == nil && actual != s {
		err = fmt.Errorf("%s: the file was altered: its checksum does not match", path)
	}
	return err
}

// ofFile returns the FileSum of a file that should have the FileSum s.
func (s FileSum) ofFile(path string) (sum FileSum, err error) {
	if s.Size > 1<<16 {
		return SumFile(path)
	}
	err = filesys.WithFile(path, func(content []byte) error {
		sum = SumOf(content)
		return nil
	})
	return sum, err
}
