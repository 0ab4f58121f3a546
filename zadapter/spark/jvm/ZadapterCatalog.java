package org.apache.spark.sql.connector.catalog.procedures;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.Iterator;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedTransferQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.execution.QueryExecutionException;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A catalog of procedures that run in Python. A statement puts a request into a queue and waits;
 * threads of Python take requests from it and answer them. The driver compiles this file with
 * Janino, which knows no lambdas and few generic or covariant types. Types of columns and parameters are BOOLEAN,
 * BIGINT, DOUBLE, STRING, TIMESTAMP and arrays of them; parameters may also be maps.
 */
public final class ZadapterCatalog implements ProcedureCatalog {
  private static final String NAMESPACE = "system";
  private static final long SECONDS = 60;
  private static final String OMITTED = "zadapter: omitted";
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final Map PROCEDURES = new ConcurrentHashMap();
  private static final LinkedTransferQueue REQUESTS = new LinkedTransferQueue();

  private String name;

  /** Adds a procedure; parameters that may be null are optional. */
  public static void define(String name, String description, String parameters) {
    PROCEDURES.put(name, new PythonProcedure(name, description, StructType.fromDDL(parameters)));
  }

  /** Waits for the next request: a new one, or one whose statement has been interrupted since. */
  public static Request take() throws InterruptedException {
    return (Request) REQUESTS.take();
  }

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
  }

  public String name() {
    return name;
  }

  public Identifier[] listProcedures(String[] namespace) {
    Object[] names = PROCEDURES.keySet().toArray();
    boolean own = namespace.length == 0 || isOwn(namespace);
    Identifier[] found = new Identifier[own ? names.length : 0];
    for (int at = 0; at < found.length; at++) {
      found[at] = Identifier.of(new String[] {NAMESPACE}, (String) names[at]);
    }
    return found;
  }

  public UnboundProcedure loadProcedure(Identifier identifier) {
    Object found = PROCEDURES.get(identifier.name().toLowerCase());
    if (found == null || !isOwn(identifier.namespace())) {
      throw new UnknownProcedure(name, identifier);
    }
    return (UnboundProcedure) found;
  }

  private static boolean isOwn(String[] namespace) {
    return namespace.length == 1 && namespace[0].equalsIgnoreCase(NAMESPACE);
  }

  /** An error of Spark's own kind, since Spark hides the text of others. */
  static final class UnknownProcedure extends IllegalArgumentException implements SparkThrowable {
    private final String routine;

    UnknownProcedure(String catalog, Identifier identifier) {
      super(
          "there is no procedure " + catalog + "." + identifier + "; those of " + catalog + "."
              + NAMESPACE + " are " + String.join(", ", new TreeSet(PROCEDURES.keySet())));
      this.routine = catalog + "." + identifier;
    }

    public String getCondition() {
      return "ROUTINE_NOT_FOUND";
    }

    public String getErrorClass() {
      return getCondition();
    }

    public Map getMessageParameters() {
      return Collections.singletonMap("routineName", routine);
    }
  }

  /** A statement that waits for its answer. */
  public static final class Request {
    private final String procedure;
    private final String arguments;
    private final SparkSession session = SparkSession.active();
    private final Properties properties =
        (Properties) session.sparkContext().getLocalProperties().clone();
    private final AtomicBoolean started = new AtomicBoolean();
    private final CountDownLatch ended = new CountDownLatch(1);
    private volatile Object result;
    private volatile boolean interrupted;

    Request(String procedure, String arguments) {
      this.procedure = procedure;
      this.arguments = arguments;
    }

    /** Returns true once, also if the request is taken again: the caller runs the procedure. */
    public boolean start() {
      return started.compareAndSet(false, true);
    }

    public String procedure() {
      return procedure;
    }

    /** The arguments by name, as JSON; NULL for texts that are given as NULL. */
    public String arguments() {
      return arguments;
    }

    /** The session of the statement. */
    public SparkSession session() {
      return session;
    }

    /** The properties of Spark jobs that the statement starts, such as their group. */
    public Properties properties() {
      return properties;
    }

    public boolean interrupted() {
      return interrupted;
    }

    /** Answers with the rows of a JSON array. */
    public void answer(String columns, String rows) throws JsonProcessingException {
      end(new Answer(StructType.fromDDL(columns), MAPPER.readTree(rows)));
    }

    /** Fails the statement with an error whose text PySpark shows as it is. */
    public void fail(String message, boolean wrongArgument) {
      end(
          wrongArgument
              ? (Exception) new IllegalArgumentException(message)
              : new QueryExecutionException(message, null));
    }

    private void end(Object found) {
      result = found;
      ended.countDown();
    }

    /** Waits also when interrupted: a rewrite ends by itself, and says what it has committed. */
    Answer await() {
      if (!isTaken()) {
        throw new IllegalStateException(
            "the Python process that registered zadapter's procedures does not answer; call "
                + "zadapter.register_procedures() again");
      }
      while (!hasEnded()) {}
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
      if (result instanceof Exception) {
        Platform.throwException((Exception) result);
      }
      return (Answer) result;
    }

    private boolean isTaken() {
      try {
        return REQUESTS.tryTransfer(this, SECONDS, TimeUnit.SECONDS);
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("interrupted before the procedure started");
      }
    }

    private boolean hasEnded() {
      try {
        ended.await();
        return true;
      } catch (InterruptedException error) {
        interrupted = true;
        REQUESTS.put(this);
        return false;
      }
    }
  }

  /** A procedure that takes the same parameters whatever the arguments. */
  static final class PythonProcedure implements UnboundProcedure, BoundProcedure {
    private final String name;
    private final String description;
    private final StructType parameters;

    PythonProcedure(String name, String description, StructType parameters) {
      this.name = name;
      this.description = description;
      this.parameters = parameters;
    }

    public String name() {
      return name;
    }

    public String description() {
      return description;
    }

    public BoundProcedure bind(StructType given) {
      return this;
    }

    public boolean isDeterministic() {
      return false;
    }

    public ProcedureParameter[] parameters() {
      StructField[] fields = parameters.fields();
      ProcedureParameter[] found = new ProcedureParameter[fields.length];
      for (int at = 0; at < fields.length; at++) {
        ProcedureParameter.Builder builder =
            ProcedureParameter.in(fields[at].name(), fields[at].dataType());
        String omitted = isText(at) ? "'" + OMITTED + "'" : "NULL";
        found[at] = (fields[at].nullable() ? builder.defaultValue(omitted) : builder).build();
      }
      return found;
    }

    private boolean isText(int at) {
      return parameters.fields()[at].dataType() instanceof StringType;
    }

    public Iterator call(InternalRow given) {
      ObjectNode arguments = MAPPER.createObjectNode();
      StructField[] fields = parameters.fields();
      for (int at = 0; at < fields.length; at++) {
        String parameter = fields[at].name();
        if (!given.isNullAt(at)) {
          Object value = given.get(at, fields[at].dataType());
          if (!OMITTED.equals(value.toString())) {
            arguments.set(parameter, toJson(value, fields[at].dataType()));
          }
        } else if (isText(at) || !fields[at].nullable()) {
          arguments.putNull(parameter);
        }
      }
      Request request = new Request(name, arguments.toString());
      return Collections.singletonList(request.await()).iterator();
    }
  }

  /** The rows of an answer. */
  static final class Answer implements LocalScan {
    private final StructType schema;
    private final InternalRow[] rows;

    Answer(StructType schema, JsonNode given) {
      this.schema = schema;
      this.rows = new InternalRow[given.size()];
      StructField[] fields = schema.fields();
      for (int at = 0; at < rows.length; at++) {
        JsonNode row = (JsonNode) given.get(at);
        Object[] values = new Object[fields.length];
        for (int column = 0; column < fields.length; column++) {
          JsonNode value = (JsonNode) row.get(fields[column].name());
          values[column] = fromJson(value, fields[column].dataType());
        }
        rows[at] = new GenericInternalRow(values);
      }
    }

    public StructType readSchema() {
      return schema;
    }

    public InternalRow[] rows() {
      return rows;
    }
  }

  static JsonNode toJson(Object value, DataType type) {
    if (type instanceof MapType) {
      MapType types = (MapType) type;
      Object[] keys = ((MapData) value).keyArray().toObjectArray(types.keyType());
      Object[] values = ((MapData) value).valueArray().toObjectArray(types.valueType());
      ObjectNode entries = MAPPER.createObjectNode();
      for (int at = 0; at < keys.length; at++) {
        entries.set(keys[at].toString(), toJson(values[at], types.valueType()));
      }
      return entries;
    }
    if (!(type instanceof ArrayType)) {
      return MAPPER.valueToTree(value instanceof UTF8String ? value.toString() : value);
    }
    DataType element = ((ArrayType) type).elementType();
    Object[] items = ((ArrayData) value).toObjectArray(element);
    ArrayNode found = MAPPER.createArrayNode();
    for (int at = 0; at < items.length; at++) {
      found.add(toJson(items[at], element));
    }
    return found;
  }

  static Object fromJson(JsonNode value, DataType type) {
    if (value == null || value.isNull()) {
      return null;
    }
    if (type instanceof ArrayType) {
      Object[] items = new Object[value.size()];
      for (int at = 0; at < items.length; at++) {
        items[at] = fromJson((JsonNode) value.get(at), ((ArrayType) type).elementType());
      }
      return new GenericArrayData(items);
    }
    if (type instanceof StringType) {
      return UTF8String.fromString(value.asText());
    }
    if (type instanceof BooleanType) {
      return Boolean.valueOf(value.asBoolean());
    }
    return type instanceof DoubleType
        ? (Object) Double.valueOf(value.asDouble())
        : Long.valueOf(value.asLong());
  }
}
