package zadapter.iceberg;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Values of one column in the layout of Arrow's buffers: numbers, or texts one behind the other.
 * Public, since Janino gives each source a class loader of its own.
 */
public final class ArrowColumn {
  public final boolean texts;
  public int length;
  public int nulls;
  public int end;
  private boolean isSet;
  private int last;
  private long[] numbers = new long[64];
  private int[] offsets = new int[64];
  private byte[] bytes = new byte[64];
  private byte[] valid = new byte[8];

  public ArrowColumn(boolean texts) {
    this.texts = texts;
  }

  /** Begins anew. */
  public void clear() {
    length = 0;
    nulls = 0;
    end = 0;
    last = 0;
    isSet = false;
    Arrays.fill(valid, (byte) 0);
  }

  /** Returns whether the next value was set. */
  public boolean isSet() {
    return isSet;
  }

  /** Returns the number that was set. */
  public long number() {
    return numbers[length];
  }

  /** Sets the next value; one that was set before is replaced. */
  public void set(long value) {
    if (length == numbers.length) {
      numbers = Arrays.copyOf(numbers, 2 * length);
    }
    numbers[length] = value;
    isSet = true;
  }

  public void set(byte[] data, int start, int count) {
    int stop = Math.addExact(last, count);
    if (stop > bytes.length) {
      bytes = Arrays.copyOf(bytes, (int) Math.min(Integer.MAX_VALUE - 8, 2L * stop));
    }
    System.arraycopy(data, start, bytes, last, count);
    end = stop;
    isSet = true;
  }

  /** Takes the value that was set, or null. */
  public void add() {
    if (length / 8 == valid.length) {
      valid = Arrays.copyOf(valid, 2 * valid.length);
    }
    if (isSet) {
      valid[length >> 3] |= (byte) (1 << (length & 7));
    } else {
      nulls++;
      if (!texts) {
        set(0);
      }
    }
    length++;
    last = end;
    if (texts) {
      if (length == offsets.length) {
        offsets = Arrays.copyOf(offsets, 2 * length);
      }
      offsets[length] = end;
    }
    isSet = false;
  }

  /** Drops the value that was set. */
  public void undo() {
    end = last;
    isSet = false;
  }

  /** Returns the number of bytes that are written. */
  public long bytes() {
    long validity = nulls > 0 ? padded((length + 7) / 8) : 0;
    return validity + (texts ? (long) padded(4 * (length + 1)) + padded(end) : 8L * length);
  }

  /** Writes the validity, if there are nulls, and the numbers, or the offsets and the texts. */
  public void write(ByteBuffer buffer) {
    if (nulls > 0) {
      buffer.put(valid, 0, (length + 7) / 8);
      align(buffer);
    }
    if (texts) {
      buffer.asIntBuffer().put(offsets, 0, length + 1);
      buffer.position(buffer.position() + 4 * (length + 1));
      align(buffer);
      buffer.put(bytes, 0, end);
      align(buffer);
    } else {
      buffer.asLongBuffer().put(numbers, 0, length);
      buffer.position(buffer.position() + 8 * length);
    }
  }

  public static void align(ByteBuffer buffer) {
    buffer.position(padded(buffer.position()));
  }

  public static int padded(int length) {
    return (length + 7) / 8 * 8;
  }
}
