//go:build !nocloud

package fetch

// The clients of these two double the size of the program; the tag nocloud leaves them out.
import (
	_ "gocloud.dev/blob/gcsblob" // gs://
	_ "gocloud.dev/blob/s3blob"  // s3://
)
