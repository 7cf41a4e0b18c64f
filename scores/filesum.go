package scores

import (
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// A FileSum is a file's size and CRC-32C (Castagnoli), to recognise an altered file.
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
	sum := crc32.New(castagnoli)
	size, err := io.Copy(sum, f)
	return FileSum{size, fmt.Sprintf("%08x", sum.Sum32())}, err
}

// SumOf returns the FileSum of a file with the given content.
func SumOf(content []byte) FileSum {
	return FileSum{int64(len(content)), string(appendHex(nil, crc32.Checksum(content, castagnoli)))}
}

// Verify returns an error unless the file can be read and has the size and the checksum of s.
func (s FileSum) Verify(path string) error {
	actual, err := SumFile(path)
	if err == nil && actual != s {
		err = fmt.Errorf("%s: the file was altered: its checksum does not match", path)
	}
	return err
}
