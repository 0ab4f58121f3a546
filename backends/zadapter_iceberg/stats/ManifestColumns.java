package zadapter.iceberg;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.file.DataFileStream;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.io.FileIO;

/**
 * Columns of the live data files in manifests, as Arrow's buffers: no object for each file. Fields
 * are found by their ids in the schema that a manifest was written with. The driver compiles this
 * file with Janino, which knows no lambdas and few generic types.
 *
 * <p>Each item is a message in little-endian order. One of files has their number and that of the
 * columns; then, for each column, whether it has texts, the number of its nulls and the bytes of its
 * texts; then, for each column, the validity (if there are nulls), the numbers or offsets, and the
 * texts, each padded to 8 bytes. The first may have no files. The last message has -1, whether all
 * manifests were read, their number, and the number of live files of each.
 */
public final class ManifestColumns implements Iterator {
  private static final int NOTHING = 0;
  private static final int NUMBER = 1;
  private static final int TRUTH = 2;
  private static final int TEXT = 3;
  private static final int FIXED = 4;
  private static final int UNION = 5;
  private static final int RECORD = 6;
  private static final int ARRAY = 7;
  private static final int MAP = 8;
  private static final int ENTRIES = 9;

  private static final int STATUS = 0;
  private static final int DATA_FILE = 2;
  private static final int PATH = 100;
  private static final int PARTITION = 102;
  private static final int ROWS = 103;
  private static final int SIZE = 104;
  private static final int CONTENT = 134;
  private static final int[] BOUNDS = {125, 128};
  private static final int[] COUNTS = {110, 137};
  private static final int DELETED = 2;
  private static final int DEPTH = 20;

  private final ArrowColumn status = new ArrowColumn(false);
  private final ArrowColumn content = new ArrowColumn(false);
  private final ArrowColumn path = new ArrowColumn(true);
  private final ArrowColumn rows = new ArrowColumn(false);
  private final ArrowColumn size = new ArrowColumn(false);
  private final ArrowColumn specs = new ArrowColumn(false);
  private final List columns = new ArrayList();
  private Iterator manifests;
  private FileIO io;
  private int spec;
  private int[] ids;
  private ArrowColumn[][] stats;
  private int[] fields;
  private ArrowColumn[] values;
  private int mostFiles;
  private int mostBytes;

  private ManifestFile manifest;
  private DataFileStream stream;
  private Node entry;
  private long found;
  private final List counts = new ArrayList();
  private byte[] data;
  private int at;
  private int end;
  private long left;
  private boolean started;
  private boolean ended;

  /**
   * Sets what is read.
   *
   * @param manifests the manifests of data files
   * @param io how they are read
   * @param spec id of the partition spec whose values are read
   * @param ids ids of the columns whose bounds and counts are read
   * @param fields ids of partition fields
   * @param texts whether the values of each of these fields are texts, or else numbers
   * @param mostFiles number of files after which a message ends
   * @param mostBytes number of bytes after which a message ends
   */
  public void open(
      List manifests, FileIO io, int spec, List ids, List fields, List texts, int mostFiles,
      int mostBytes) {
    this.manifests = manifests.iterator();
    this.io = io;
    this.spec = spec;
    this.mostFiles = mostFiles;
    this.mostBytes = mostBytes;
    columns.addAll(Arrays.asList(new Object[] {path, rows, size, specs}));
    this.ids = new int[ids.size()];
    stats = new ArrowColumn[4][ids.size()];
    for (int number = 0; number < ids.size(); number++) {
      this.ids[number] = ((Number) ids.get(number)).intValue();
      for (int kind = 0; kind < 4; kind++) {
        stats[kind][number] = new ArrowColumn(kind < 2);
        columns.add(stats[kind][number]);
      }
    }
    this.fields = new int[fields.size()];
    values = new ArrowColumn[fields.size()];
    for (int number = 0; number < fields.size(); number++) {
      this.fields[number] = ((Number) fields.get(number)).intValue();
      values[number] = new ArrowColumn(((Boolean) texts.get(number)).booleanValue());
      columns.add(values[number]);
    }
  }

  /** Ends the reading, and closes the manifest that is read. */
  public synchronized void close() {
    ended = true;
    close(stream);
  }

  public synchronized boolean hasNext() {
    return !ended;
  }

  public synchronized Object next() {
    if (ended) { // closed meanwhile
      return last(false);
    }
    for (int number = 0; number < columns.size(); number++) {
      ((ArrowColumn) columns.get(number)).clear();
    }
    boolean whole = false;
    try {
      while (path.length < mostFiles && bytes() < mostBytes && nextBlock()) {
        readFiles();
      }
      whole = true;
    } catch (IOException error) {
      throw new java.io.UncheckedIOException(error);
    } catch (UnsupportedOperationException error) {
      // Iceberg's own readers are asked
    } finally {
      if (!whole) {
        close(stream);
      }
    }
    if (!whole || path.length == 0 && started) {
      ended = true;
      return last(whole);
    }
    started = true;
    return message();
  }

  private long bytes() {
    long total = 0;
    for (int number = 0; number < columns.size(); number++) {
      total += ((ArrowColumn) columns.get(number)).bytes();
    }
    return total;
  }

  private static void close(Closeable stream) {
    try {
      if (stream != null) {
        stream.close();
      }
    } catch (IOException error) { // what has ended the reading matters more
    }
  }

  /** Goes to the next block with entries, in this manifest or the next one. */
  private boolean nextBlock() throws IOException {
    while (left == 0) {
      if (at != end) {
        throw new IOException("entries of " + manifest.path() + " end within a block");
      }
      if (stream != null && stream.hasNext()) {
        ByteBuffer block = stream.nextBlock();
        data = block.array();
        at = block.arrayOffset() + block.position();
        end = at + block.remaining();
        left = stream.getBlockCount();
      } else if (!nextManifest()) {
        return false;
      }
    }
    return true;
  }

  private boolean nextManifest() throws IOException {
    if (stream != null) {
      stream.close();
      stream = null;
      Integer added = manifest.addedFilesCount();
      Integer existing = manifest.existingFilesCount();
      if (added != null && existing != null && found != added.longValue() + existing.longValue()) {
        throw new UnsupportedOperationException("another number of files than listed");
      }
      counts.add(Long.valueOf(found));
    }
    if (!manifests.hasNext()) {
      return false;
    }
    manifest = (ManifestFile) manifests.next();
    if (manifest.keyMetadata() != null) {
      throw new UnsupportedOperationException("encrypted");
    }
    found = 0;
    InputStream input = io.newInputFile(manifest.path(), manifest.length()).newStream();
    try {
      stream = new DataFileStream(input, new GenericDatumReader());
    } finally {
      if (stream == null) { // this is no Avro, which the error says
        close(input);
      }
    }
    entry = entryOf(stream.getSchema());
    return true;
  }

  /** Reads files of the block until the message is full. */
  private void readFiles() {
    boolean current = manifest.partitionSpecId() == spec;
    while (left > 0 && path.length < mostFiles) {
      status.clear();
      content.clear();
      read(entry);
      left--;
      if (!status.isSet() || content.isSet() && content.number() != 0) {
        throw new UnsupportedOperationException("no data file");
      }
      boolean live = status.number() != DELETED;
      if (live) {
        specs.set(manifest.partitionSpecId());
        found++;
      }
      for (int number = 0; number < columns.size(); number++) {
        ArrowColumn column = (ArrowColumn) columns.get(number);
        if (live) {
          column.add();
        } else {
          column.undo();
        }
      }
    }
    if (path.nulls + rows.nulls + size.nulls > 0) {
      throw new UnsupportedOperationException("a file without a path, rows or a size");
    }
  }

  private byte[] last(boolean whole) {
    ByteBuffer buffer = ByteBuffer.allocate(12 + 4 * counts.size());
    buffer.order(ByteOrder.LITTLE_ENDIAN).putInt(-1).putInt(whole ? 1 : 0).putInt(counts.size());
    for (int number = 0; number < counts.size(); number++) {
      buffer.putInt(((Number) counts.get(number)).intValue());
    }
    return buffer.array();
  }

  private byte[] message() {
    int count = columns.size();
    ByteBuffer buffer = ByteBuffer.allocate(Math.toIntExact(ArrowColumn.padded(8 + 12 * count) + bytes()));
    buffer.order(ByteOrder.LITTLE_ENDIAN).putInt(path.length).putInt(count);
    for (int number = 0; number < count; number++) {
      ArrowColumn column = (ArrowColumn) columns.get(number);
      buffer.putInt(column.texts ? 1 : 0).putInt(column.nulls).putInt(column.end);
    }
    ArrowColumn.align(buffer);
    for (int number = 0; number < count; number++) {
      ((ArrowColumn) columns.get(number)).write(buffer);
    }
    return buffer.array();
  }

  // the schema of a manifest

  private Node entryOf(Schema schema) {
    Node node = nodeOf(schema, 0);
    capture(child(node, STATUS), status);
    Node file = child(node, DATA_FILE);
    capture(child(file, PATH), path);
    capture(child(file, ROWS), rows);
    capture(child(file, SIZE), size);
    if (file.find(CONTENT) != null) {
      capture(file.find(CONTENT), content);
    }
    for (int kind = 0; kind < 2; kind++) {
      captureEntries(file.find(BOUNDS[kind]), stats[kind]);
      captureEntries(file.find(COUNTS[kind]), stats[2 + kind]);
    }
    if (manifest.partitionSpecId() == spec && fields.length > 0) {
      Node partition = child(file, PARTITION);
      for (int number = 0; number < fields.length; number++) {
        capture(child(partition, fields[number]), values[number]);
      }
    }
    return node;
  }

  private static Node nodeOf(Schema schema, int depth) {
    if (depth > DEPTH) {
      throw new UnsupportedOperationException("a schema within itself");
    }
    Schema.Type type = schema.getType();
    Node node = new Node();
    if (type == Schema.Type.NULL) {
      node.kind = NOTHING;
    } else if (type == Schema.Type.INT || type == Schema.Type.LONG || type == Schema.Type.ENUM) {
      node.kind = NUMBER;
    } else if (type == Schema.Type.BOOLEAN) {
      node.kind = TRUTH;
    } else if (type == Schema.Type.STRING || type == Schema.Type.BYTES) {
      node.kind = TEXT;
    } else if (type == Schema.Type.FLOAT) {
      node.kind = FIXED;
      node.size = 4;
    } else if (type == Schema.Type.DOUBLE) {
      node.kind = FIXED;
      node.size = 8;
    } else if (type == Schema.Type.FIXED) {
      node.kind = FIXED;
      node.size = schema.getFixedSize();
    } else if (type == Schema.Type.UNION) {
      node.kind = UNION;
      node.children = new Node[schema.getTypes().size()];
      for (int number = 0; number < node.children.length; number++) {
        node.children[number] = nodeOf((Schema) schema.getTypes().get(number), depth + 1);
      }
    } else if (type == Schema.Type.ARRAY) {
      node.kind = ARRAY;
      node.children = new Node[] {nodeOf(schema.getElementType(), depth + 1)};
    } else if (type == Schema.Type.MAP) {
      node.kind = MAP;
      node.children = new Node[] {nodeOf(schema.getValueType(), depth + 1)};
    } else {
      node.kind = RECORD;
      node.children = new Node[schema.getFields().size()];
      node.ids = new int[node.children.length];
      for (int number = 0; number < node.children.length; number++) {
        Schema.Field field = (Schema.Field) schema.getFields().get(number);
        node.children[number] = nodeOf(field.schema(), depth + 1);
        Object id = field.getObjectProp("field-id");
        node.ids[number] = id instanceof Number ? ((Number) id).intValue() : -1;
      }
    }
    return node;
  }

  private static Node child(Node node, int id) {
    Node found = node.find(id);
    if (found == null) {
      throw new UnsupportedOperationException("no field " + id);
    }
    return found;
  }

  private static void capture(Node node, ArrowColumn column) {
    if (node.kind == UNION) {
      for (int number = 0; number < node.children.length; number++) {
        if (node.children[number].kind != NOTHING) {
          capture(node.children[number], column);
        }
      }
    } else if (column.texts ? node.kind == TEXT || node.kind == FIXED
        : node.kind == NUMBER || node.kind == TRUTH) {
      node.column = column;
    } else {
      throw new UnsupportedOperationException("another type");
    }
  }

  /** Captures values of a map, which is an array of records of a key and a value. */
  private void captureEntries(Node node, ArrowColumn[] wanted) {
    if (node == null || wanted.length == 0) {
      return;
    }
    if (node.kind == UNION) {
      for (int number = 0; number < node.children.length; number++) {
        if (node.children[number].kind != NOTHING) {
          captureEntries(node.children[number], wanted);
        }
      }
      return;
    }
    Node pair = node.kind == ARRAY ? node.children[0] : node;
    if (pair.kind != RECORD || pair.children.length != 2 || pair.children[0].kind != NUMBER
        || pair.children[1].kind != (wanted[0].texts ? TEXT : NUMBER)) {
      throw new UnsupportedOperationException("another type");
    }
    pair.kind = ENTRIES;
    pair.wanted = wanted;
  }

  /** A type of a manifest's schema. */
  private static final class Node {
    int kind;
    int size;
    int[] ids;
    Node[] children;
    ArrowColumn column;
    ArrowColumn[] wanted;

    Node find(int id) {
      Node found = null;
      for (int number = 0; ids != null && number < ids.length; number++) {
        if (ids[number] == id) {
          found = children[number];
        }
      }
      return found;
    }
  }

  // the values

  private void read(Node node) {
    switch (node.kind) {
      case NUMBER:
        long number = number();
        if (node.column != null) {
          node.column.set(number);
        }
        break;
      case TRUTH:
        if (node.column != null) {
          node.column.set(data[at]);
        }
        at++;
        break;
      case TEXT:
        pass(node.column, Math.toIntExact(number()));
        break;
      case FIXED:
        pass(node.column, node.size);
        break;
      case UNION:
        read(node.children[(int) number()]);
        break;
      case RECORD:
        for (int child = 0; child < node.children.length; child++) {
          read(node.children[child]);
        }
        break;
      case ENTRIES:
        readEntries(node, 1);
        break;
      case ARRAY:
      case MAP:
        readItems(node);
        break;
      default:
        break;
    }
  }

  private void readEntries(Node node, long count) {
    boolean texts = node.children[1].kind == TEXT;
    for (long entry = 0; entry < count; entry++) {
      long id = number();
      ArrowColumn column = null;
      for (int number = 0; number < ids.length; number++) {
        if (ids[number] == id) {
          column = node.wanted[number];
        }
      }
      long value = number();
      if (texts) {
        pass(column, Math.toIntExact(value));
      } else if (column != null) {
        column.set(value);
      }
    }
  }

  private void readItems(Node node) {
    Node item = node.children[0];
    long count = number();
    while (count != 0) {
      if (count < 0) {
        count = -count;
        number(); // the bytes of the items
      }
      if (item.kind == ENTRIES) {
        readEntries(item, count);
      } else {
        for (long number = 0; number < count; number++) {
          if (node.kind == MAP) {
            pass(null, Math.toIntExact(number()));
          }
          read(item);
        }
      }
      count = number();
    }
  }

  private void pass(ArrowColumn column, int length) {
    if (length < 0 || length > end - at) {
      throw new IllegalStateException("a value of " + manifest.path() + " ends after its block");
    }
    if (column != null) {
      column.set(data, at, length);
    }
    at += length;
  }

  private long number() {
    byte first = data[at++];
    if (first >= 0) {
      return (first >>> 1) ^ -(first & 1);
    }
    long value = first & 0x7FL;
    for (int shift = 7; shift < 64; shift += 7) {
      byte next = data[at++];
      value |= (next & 0x7FL) << shift;
      if (next >= 0) {
        return (value >>> 1) ^ -(value & 1);
      }
    }
    throw new IllegalStateException("a number of " + manifest.path() + " has no end");
  }
}
